"""Make `breakpoint()` in the training process open pdb at the terminal of the command.

The training process has no terminal: the parent prints its output, and its standard input shows that the parent lives.
"""

import os
import pdb
import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType

# `step` and `next` stop only in the experiment, not in the code that calls it or that it calls.
_NOT_THEIRS = ("harness.*", "torch.*", "__main__")


def support_breakpoints(ask_for_terminal: Callable[[], None] | None) -> None:
    """Make `breakpoint()` and `pdb.set_trace()` open pdb.

    ask_for_terminal: waits until the parent stops writing to the terminal. If None, there is no terminal, and both
    functions raise `RuntimeError`.
    """

    def stop(*_: object, **__: object) -> None:
        if ask_for_terminal is None:
            raise RuntimeError("breakpoint() needs a terminal: run the command in one, or print the values instead")
        if not os.isatty(0):
            _take_terminal()
            ask_for_terminal()
        _Debugger(nosigint=True, skip=_NOT_THEIRS).set_trace(sys._getframe(1))

    sys.breakpointhook = stop
    pdb.set_trace = stop


class _Debugger(pdb.Pdb):
    """A pdb that ends the run when the student quits."""

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        super().interaction(frame, traceback)
        if self.quitting:
            raise KeyboardInterrupt


def _take_terminal() -> None:
    """Connect standard input and output to the terminal of the command."""
    sys.stdout.flush()
    terminal = os.open("/dev/tty", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(terminal, standard)
    os.close(terminal)
    # Line editing needs a stream with file descriptor 0.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    # In pdb each Ctrl-C discards the current line.
    signal.signal(signal.SIGINT, signal.default_int_handler)
