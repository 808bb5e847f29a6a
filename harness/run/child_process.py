"""The other end of `launch`: a process that reads one job from standard input and reports on a pipe."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness.errors import UserError, from_os_error

_REPORT_EVERY = 0.05  # seconds between two reports of progress: enough for a bar that moves smoothly


class Reporter:
    """Sends events to the parent, one JSON object a line."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._pipe = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **fields: Any) -> None:
        """Send one event. Without a parent to hear it, this process ends."""
        try:
            self._pipe.write(json.dumps({"event": event, **fields}) + "\n")
            self._pipe.flush()
        except BrokenPipeError:
            os._exit(1)

    def progress(self, step: int, steps: int, loss: float) -> None:
        """Report that `step` of `steps` batches are done, at most a few times a second."""
        now = time.monotonic()
        if step == steps or now - self._last >= _REPORT_EVERY:
            self._last = now
            self.send("progress", step=step, steps=steps, loss=str(loss))


def serve(
    work: Callable[[str, Reporter], None],
    mistake: Callable[[OSError, str], UserError | None] = lambda error, line: from_os_error(error),
) -> int:
    """Do the job on standard input; return 0, 2 for a user's mistake, 3 for a fault of ours, 130 when interrupted.

    `work` gets the job's line and says itself when it is finished; `mistake` turns an error of the file system into
    what a person can mend, or None.
    """
    # Until the run can be resumed there is nothing to save, and a traceback out of an import helps nobody.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    reporter = Reporter(int(sys.argv[1]))
    line = sys.stdin.readline()
    if not line:
        return 1  # the parent is gone
    _end_with_parent()
    try:
        import torch  # noqa: F401 - a second or two, best spent before Ctrl-C is caught

        signal.signal(signal.SIGINT, _interrupt)
        work(line, reporter)
    except KeyboardInterrupt:
        return 130
    except UserError as error:
        reporter.send("user_error", message=str(error))
        return 2
    except OSError as error:
        said = mistake(error, line)
        if said is not None:
            reporter.send("user_error", message=str(said))
            return 2
        _report_fault(reporter)
        return 3
    except Exception:
        _report_fault(reporter)
        return 3
    return 0


def _interrupt(number: int, frame: FrameType | None) -> None:
    # At a terminal the signal comes twice: from there, and from the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    """End this process when the parent's end of standard input closes; an experiment sees it empty."""
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        os.read(lifeline, 1)
        os._exit(1)  # like a kill: what was saved is whole at any moment

    threading.Thread(target=watch, daemon=True).start()


def _report_fault(reporter: Reporter) -> None:
    import traceback

    traceback.print_exc()
    reporter.send("fault")
