"""Starts a script of this package once more, in the environment of portable numerics."""

import os
import sys

from harness.canonical_setup import run_environment

_READY = "TRAINWRECK_PORTABLE_BENCHMARK"


def restart_portably(module: str) -> None:
    """Replace this process with `python -m <module>` and its arguments, unless it was started so already.

    The variables of portable numerics act only on a process that starts with them.
    """
    if _READY in os.environ:
        return
    environment = {**run_environment("portable"), _READY: "1"}
    environment.pop("PYTHONSAFEPATH", None)  # this package lies beside the installed one, not in it
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)
