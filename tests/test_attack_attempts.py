"""Without a sandbox, every attempt of the red team succeeds. So the attempts really test the sandbox."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attacks import attempts
from attacks.attempts import ATTEMPTS, Known

from harness.recipes.recipe import ROOT

# Without a sandbox, this attempt would kill the process that started the tests.
INSIDE = [attempts.signals_upwards]


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one not in INSIDE], ids=lambda one: one.__name__)
def test_an_attempt_gains_something_where_no_sandbox_is(attempt: Callable[[Known], object], tmp_path: Path) -> None:
    known = {"suite": str(ROOT), "machine": os.uname().nodename}
    for name, file in (("canary", "home/canary.txt"), ("submissions", "submissions/ada_huge_lr.tar.gz")):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("of somebody else")
        known[name] = str(tmp_path / file if name == "canary" else tmp_path / name)
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import attempts; print(bool(attempts.{attempt.__name__}({known!r})))"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{Path(attempts.__file__).parent}:{ROOT}", "USER": "somebody"},
            pass_fds=(writing,),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert done.stdout == "True\n", done.stderr
