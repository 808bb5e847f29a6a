"""The limit on the grader's own work: it ends a loop, even one that catches errors, and waiting time does not count."""

import contextlib
import signal
import threading
import time

import pytest

from grader.score.work_limit import WorkLimitError, work_limit


def test_work_without_end_ends() -> None:
    with pytest.raises(WorkLimitError, match="instructor has to decide"), work_limit(0.1):
        while True:
            pass


def test_work_that_catches_the_error_ends_too() -> None:
    with pytest.raises(WorkLimitError), work_limit(0.1):
        with contextlib.suppress(Exception):
            while True:
                pass
        while True:
            pass


def test_waiting_and_the_work_of_others_cost_nothing_and_nothing_stays_behind() -> None:
    before = signal.getsignal(signal.SIGVTALRM)
    done = threading.Event()

    def work() -> None:
        with work_limit(0.01):  # outside the main thread, there is no limit
            end = time.thread_time() + 0.6
            while time.thread_time() < end:
                pass
        done.set()

    with work_limit(0.3):
        threading.Thread(target=work).start()
        assert done.wait(timeout=600)
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
