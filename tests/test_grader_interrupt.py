"""Ctrl-C and SIGKILL while students' experiments run: the experiments end with the grader."""

import os
import signal
import sys
from pathlib import Path

import pytest
from attacks.attack import with_members
from helpers.honest_class import RECIPE, HonestClass
from helpers.sandbox_marks import needs_sandbox
from helpers.watched import Watched

from grader.replay.replayer import ENGINES, Engine

# Restore Ctrl-C as at a terminal, because a shell starts background jobs with Ctrl-C ignored.
GRADER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from grader.cli import main
main()
"""


@needs_sandbox
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_grader_that_is_stopped_takes_its_runs_along(
    number: signal.Signals, engine: Engine, honest: HonestClass, tmp_path: Path
) -> None:
    honest.remember(tmp_path / "replays")
    for folder in ("submissions", "tmp"):
        (tmp_path / folder).mkdir()
    for student in ("ada", "bob"):
        source = f"import time\n{student} = time.sleep(300)\n".encode()
        data = with_members(honest.tarball("reference"), {"experiment.py": source}, student=student)
        (tmp_path / "submissions" / f"{student}_{RECIPE}.tar.gz").write_bytes(data)
    words = (sys.executable, "-P", "-c", GRADER, "score", "submissions", "--sandbox", engine, "--jobs", "2")
    variables = {"TRAINWRECK_REPLAYS": str(tmp_path / "replays"), "TMPDIR": str(tmp_path / "tmp")}
    grader = Watched(words, {**os.environ, **variables}, tmp_path)
    assert grader.wait_until(lambda: grader.run("replay.py") is not None)
    os.kill(grader.processes()[0], number)
    ended = grader.finish()
    if number == signal.SIGKILL:
        assert ended.status == 128 + number
    else:
        assert (ended.status, ended.err.count("run the same command again")) == (2, 1), ended
        assert "Traceback" not in ended.err
        assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "reports" / "scores.json").exists()
