"""The processes that do one piece of work for each of many items side by side, once that is worth starting them."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from time import perf_counter
from types import TracebackType
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# (item, seconds that it took)
Noted = Callable[[Item, float], None]

# A process starts and imports what it needs in 0.9 s here: what is left must take some times as long in this one.
_WORTH = 3.0  # seconds
# The first items pay for what is read once a process, and say nothing of the others.
_LOOK = 0.5  # seconds


class Crew:
    """Up to `size` processes, which are started when there is enough to do; leaving the context ends them.

    Until then, and with a size of 1, the work is done in this process. What comes out is the same.
    """

    def __init__(self, size: int, *, worth: float = _WORTH, look: float = _LOOK) -> None:
        self._size = size
        self._worth = worth
        self._look = look
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dismiss()

    def each(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result],
        noted: Noted[Item],
    ) -> list[Result]:
        """Return what `work` gives for each item, in their order.

        work: it and the items travel to other processes. lost: says what stands for an item whose process ended
        twice before the work was done, the second time with nothing else at hand. An exception of `work` ends it all.
        """
        waiting = deque(items)
        results: list[Result] = []
        begun = perf_counter()
        while waiting and not self._is_worth(len(results), len(waiting), perf_counter() - begun):
            seconds, result = _timed(work, item := waiting.popleft())
            results.append(result)
            noted(item, seconds)
        return results + self._side_by_side(work, tuple(waiting), lost, noted)

    def _is_worth(self, done: int, left: int, seconds: float) -> bool:
        if self._size == 1 or left == 1:
            return False
        if self._pool is not None:
            return True
        return seconds >= self._look and left * seconds >= self._worth * done

    def _side_by_side(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        lost: Callable[[Item], Result],
        noted: Noted[Item],
    ) -> list[Result]:
        found: dict[int, Result] = {}
        try:
            futures = {self._submit(work, item): index for index, item in enumerate(items)}
            for future in as_completed(futures):
                index = futures[future]
                if isinstance(future.exception(), BrokenProcessPool):
                    continue
                seconds, found[index] = future.result()
                noted(items[index], seconds)
        except BaseException:
            self._dismiss()
            raise
        for index, item in enumerate(items):
            if index not in found:
                found[index] = self._alone(work, item, lost)
                noted(item, 0.0)
        return [found[index] for index in range(len(items))]

    def _alone(self, work: Callable[[Item], Result], item: Item, lost: Callable[[Item], Result]) -> Result:
        """Do again what was at hand, or waited, when a process ended: one after the other, so that one is to blame."""
        try:
            return self._submit(work, item).result()[1]
        except BrokenProcessPool:
            return lost(item)

    def _submit(self, work: Callable[[Item], Result], item: Item) -> Future[tuple[float, Result]]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._size, multiprocessing.get_context("spawn"), initializer=_settle
            )
        try:
            return self._pool.submit(_timed, work, item)
        except BrokenProcessPool:
            self._dismiss()
            return self._submit(work, item)

    def _dismiss(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _timed(work: Callable[[Item], Result], item: Item) -> tuple[float, Result]:
    begun = perf_counter()
    result = work(item)
    return perf_counter() - begun, result


def _settle() -> None:
    """Leave Ctrl-C to the grader, and end with it however it ends: a process without it would wait for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()


def _end_with_the_grader() -> None:
    grader = multiprocessing.parent_process()
    assert grader is not None
    multiprocessing.connection.wait([grader.sentinel])
    os._exit(1)
