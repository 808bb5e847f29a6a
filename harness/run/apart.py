"""Run a function in a child process, whose code cannot reach this one."""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def run_apart(measure: Callable[[Sequence[str]], dict[str, Any]], names: Sequence[str]) -> Any:
    """Run a function in a child process, and return its result, or None if the result cannot be read.

    If the child process fails, this process ends with the same exit status or signal.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(2, 1)
        status = 3
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                file.write(json.dumps(measure(names), allow_nan=False))
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        sys.exit(code)
    try:
        return json.loads(content)
    except ValueError:  # only code in the experiment can end the child process without a valid result
        return None


def empty(folder: Path) -> None:
    """Delete everything in a folder, except for read-only libraries that the sandbox has mounted in it."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
                empty(path)
                path.rmdir()
            else:
                path.unlink()
