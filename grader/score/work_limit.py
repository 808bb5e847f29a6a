"""Bound what one submission may cost the grader's own process, so that no text makes a class wait for ever."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Of the processor. Reading two logs at the limit of their size takes 6 s, every other step at most some seconds.
SECONDS = 60.0
_AGAIN = 0.5  # seconds after which an exception that some code has caught is raised once more


class WorkLimitError(Exception):
    """The grader's own work on a submission took too long."""

    def __init__(self) -> None:
        super().__init__("It takes the grader too long to compare by machine, so it waits for the instructor.")


@contextmanager
def work_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise `WorkLimitError` in the block once this thread has computed for so many seconds; waiting costs nothing.

    Only the main thread can be interrupted so; in any other the block has no bound.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end = time.thread_time() + seconds

    def stop(_number: int, _frame: FrameType | None) -> None:
        # The timer counts the time of all threads.
        if time.thread_time() >= end:
            raise WorkLimitError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
