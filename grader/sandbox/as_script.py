"""Runs a script in a process that was forked, as `python script` would: its exit status, its last words, its depth.

Not part of the grader's own process: `grader.sandbox.warm` passes its source text to the sandbox.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # as in inside.py
import atexit
import os
import runpy
import sys
import threading
import traceback

TYPE_CHECKING = False  # as in inside.py
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any, NoReturn

# How much deeper than whoever calls `run` the script lies, by what Python counts.
_RUNPY_DEPTH = 4


def run(script: str) -> NoReturn:
    """Run the script as `python script` does, and end as that ends."""
    status, interrupted = 0, False
    try:
        _prepare(script)
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as error:
            status = _status_of(error.code)
        except BaseException as error:
            status, interrupted = 1, type(error) is KeyboardInterrupt
            error.__traceback__ = _from_script(error.__traceback__, script)
            sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:
        status = 1
    try:
        threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as at the end of a program
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    try:
        if not all([_flushed(sys.stdout), _flushed(sys.stderr)]):
            status = 120
        elif interrupted:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
            os.kill(os.getpid(), _signal.SIGINT)
    finally:
        os._exit(status)


def _prepare(script: str) -> None:
    """Leave nothing of ours where a script would find it in place of what a process of its own has."""
    sys.argv = [script]
    if (random := sys.modules.get("numpy.random")) is not None:
        random.seed()  # all runs would draw the same numbers; Python's own are drawn anew after each fork
    # What recurses without end is to come as far as there.
    frame: FrameType | None = sys._getframe(1)
    depth = _RUNPY_DEPTH
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)


def _from_script(trace: TracebackType | None, script: str) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename != script:
        trace = trace.tb_next
    return trace


def _status_of(code: object) -> int:
    """Return the exit status for what `sys.exit` was given, as Python has it."""
    if code is None:
        return 0
    if isinstance(code, int):
        # What is no `long` of C is -1.
        return int.__and__(code, 0xFF) if int.bit_length(code) < 64 else 0xFF
    print(code, file=sys.stderr)
    return 1


def _flushed(stream: Any) -> bool:
    try:
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    except BaseException:
        return False
    return True
