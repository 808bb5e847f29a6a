import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.session import locked

HOLDER = """
import sys, time
from pathlib import Path
from grader.session import locked
with locked(Path(sys.argv[1])) as held:
    print(held, flush=True)
    time.sleep(600)
"""


def test_one_holds_a_folder_and_a_killed_one_no_longer(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        with locked(tmp_path) as held:
            assert not held
        process.send_signal(signal.SIGKILL)
        with locked(tmp_path, wait=True) as held:
            assert held
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError), locked(tmp_path / "nothing"):
        pass
