"""Runs a piece of Python in a process started as a run is: pytest's own has imported torch without that."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.canonical_setup import Numerics, run_environment


def run_child(
    code: str, numerics: Numerics = "portable", base: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Return what the code prints; its warnings are errors, and its failure is this test's."""
    command = [sys.executable, "-W", "error", "-c", code]
    environment = run_environment(numerics, base)
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
