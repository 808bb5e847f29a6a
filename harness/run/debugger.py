"""`breakpoint()` in the process that trains: it opens pdb at the terminal of the command.

The process has no terminal by itself: its standard input says that the parent lives, and the parent prints its lines.
"""

import os
import pdb
import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType

# `step` and `next` go from one line of the experiment to another, not through what calls it and what it calls.
_NOT_THEIRS = ("harness.*", "torch.*", "__main__")


def support_breakpoints(ask_for_terminal: Callable[[], None] | None) -> None:
    """Make `breakpoint()` and `pdb.set_trace()` open pdb.

    ask_for_terminal: returns when nobody else writes to the terminal. None: there is no terminal, and both raise
    `RuntimeError`.
    """

    def stop(*_: object, **__: object) -> None:
        if ask_for_terminal is None:
            raise RuntimeError("breakpoint() needs a terminal: give the command at one, or print what you want to see")
        if not os.isatty(0):
            _take_terminal()
            ask_for_terminal()
        _Debugger(nosigint=True, skip=_NOT_THEIRS).set_trace(sys._getframe(1))

    sys.breakpointhook = stop
    pdb.set_trace = stop


class _Debugger(pdb.Pdb):
    """Ends the run when the student quits."""

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        super().interaction(frame, traceback)
        if self.quitting:
            raise KeyboardInterrupt


def _take_terminal() -> None:
    """Make the terminal of the command standard input and output."""
    sys.stdout.flush()
    terminal = os.open("/dev/tty", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(terminal, standard)
    os.close(terminal)
    # Line editing needs a stream of this number.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    # pdb takes back a line at Ctrl-C, as often as it comes.
    signal.signal(signal.SIGINT, signal.default_int_handler)
