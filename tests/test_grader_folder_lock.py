import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.replay.folder_lock import locked

HOLDER = """
import sys, time
from pathlib import Path
from grader.replay.folder_lock import locked
with locked(Path(sys.argv[1]), shared=sys.argv[2] == "shared") as held:
    print(held, flush=True)
    time.sleep(600)
"""


def holder(folder: Path, kind: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", HOLDER, str(folder), kind], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_holds_a_folder_and_a_killed_one_no_longer(tmp_path: Path) -> None:
    with holder(tmp_path, "alone") as process:
        with locked(tmp_path) as held:
            assert not held
        with locked(tmp_path, shared=True) as held:
            assert not held
        process.send_signal(signal.SIGKILL)
    with locked(tmp_path) as held:
        assert held
    assert not list(tmp_path.iterdir())


def test_those_who_share_keep_out_who_wants_it_alone(tmp_path: Path) -> None:
    with holder(tmp_path, "shared") as process:
        with locked(tmp_path, shared=True, wait=True) as held:
            assert held
        with locked(tmp_path) as held:
            assert not held
        process.kill()
    with locked(tmp_path, wait=True) as held:
        assert held


def test_a_folder_that_is_not_there_cannot_be_held(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(OSError, match=path.name), locked(path):
            pass
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    with locked(tmp_path):
        pass
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208
