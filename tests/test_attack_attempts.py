"""Every attempt to get out of the sandbox gains something where there is none: none fails for a silly reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from attacks.attack import Base
from attacks.planted import telling
from attacks.sandbox_forked import ATTEMPTS as FORKED
from attacks.sandbox_reach import ATTEMPTS, NOT_OUTSIDE, Attempt

from harness.recipe import ROOT


@pytest.mark.parametrize(
    "attempt", [item for item in (*ATTEMPTS, *FORKED) if item.id not in NOT_OUTSIDE], ids=lambda item: item.id
)
def test_an_attempt_gains_something_where_no_sandbox_is(attempt: Attempt, tmp_path: Path) -> None:
    home, submissions, work = tmp_path / "home", tmp_path / "submissions", tmp_path / "work"
    for folder in (home, submissions, work):
        folder.mkdir()
    (home / "canary.txt").write_text("secret")
    (submissions / "ada_huge_lr.tar.gz").write_bytes(b"of somebody else")
    base = Base(b"", b"", b"", home / "canary.txt", "secret", submissions)
    code = telling(attempt.code(base, str(ROOT), os.uname().nodename), attempt.id)
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=work,
            env={**os.environ, "TRAINWRECK_REPLAYS": "somewhere"},
            pass_fds=(writing,),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert f"RuntimeError: wreck-breached {attempt.id}" in done.stderr, done.stderr
