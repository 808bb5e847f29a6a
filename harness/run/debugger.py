"""Make `breakpoint()` in the training process open pdb at the terminal of the command.

The training process has no terminal: its parent process prints its output. Its standard input is a pipe that closes
when the parent ends.
"""

import os
import pdb
import signal
import sys
from collections.abc import Callable
from types import FrameType, TracebackType

# The debugger's commands `step` and `next` stop only in the experiment, not in the code of these modules.
_NOT_THEIRS = ("harness.*", "torch.*", "__main__")


def support_breakpoints(ask_for_terminal: Callable[[], None] | None) -> None:
    """Make `breakpoint()` and `pdb.set_trace()` open pdb.

    ask_for_terminal: a function that waits until the parent process stops writing to the terminal. If None, there is no
    terminal, and both functions raise `RuntimeError`.
    """

    def stop(*_: object, **__: object) -> None:
        if ask_for_terminal is None:
            raise RuntimeError(
                "breakpoint() needs a terminal: run the command in a terminal, or print the values instead"
            )
        if not os.isatty(0):
            _take_terminal()
            ask_for_terminal()
        _Debugger(nosigint=True, skip=_NOT_THEIRS).set_trace(sys._getframe(1))

    sys.breakpointhook = stop
    pdb.set_trace = stop


class _Debugger(pdb.Pdb):
    """A pdb that ends the training run when the student quits the debugger."""

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
    # Line editing works only if standard input has file descriptor 0.
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    # In pdb, Ctrl-C discards the current input line.
    signal.signal(signal.SIGINT, signal.default_int_handler)
