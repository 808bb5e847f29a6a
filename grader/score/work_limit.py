"""Limit the time that the grader's own process spends on one submission, so that no text can block a whole class."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Processor time. Reading two logs of the largest allowed size takes 6 s, and every other step at most a few seconds.
SECONDS = 60.0
_AGAIN = 0.5  # repeat the exception after this number of seconds, because other code may have caught the first one


class WorkLimitError(Exception):
    """Raised if the grader's own work on a submission takes too long."""

    def __init__(self) -> None:
        super().__init__("The grader takes too long to compare this submission, so the instructor has to decide.")


@contextmanager
def work_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise `WorkLimitError` in the block after this thread has used `seconds` of processor time.

    This works only in the main thread. In other threads, the block has no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    end = time.thread_time() + seconds

    def stop(_number: int, _frame: FrameType | None) -> None:
        # The timer counts the time of all threads, so look at the time of this thread.
        if time.thread_time() >= end:
            raise WorkLimitError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
