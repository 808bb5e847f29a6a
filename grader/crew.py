"""The processes that do one piece of work for each of many items side by side, once that is worth starting them."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from time import perf_counter
from types import TracebackType
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# (item, seconds that it took)
Noted = Callable[[Item, float], None]

# A process starts and imports what it needs in 0.9 s here: what is left must take some times as long in this one.
_WORTH = 3.0  # seconds
# The first items pay for what is read once a process, and say nothing of the others.
_LOOK = 0.5  # seconds
_NICENESS = 5
_PRELOADED = ["grader.desk", "grader.report.submission_page"]


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
        self.dismiss()

    def each(
        self,
        work: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result],
        noted: Noted[Item],
    ) -> list[Result]:
        """Return what `work` gives for each item, in their order; see `Batch`."""
        batch = self.batch(work, lost=lost)
        for item in items:
            batch.add(item)
        return batch.results(noted)

    def batch(
        self, work: Callable[[Item], Result], *, lost: Callable[[Item], Result]
    ) -> "Batch[Item, Result]":
        """Return a batch without items.

        work: it and the items travel to other processes. lost: says what stands for an item whose process ended
        twice before the work was done, the second time with nothing else at hand.
        """
        return Batch(self, work, lost)

    @property
    def is_started(self) -> bool:
        """Whether its processes run, so that each piece of work may go to them."""
        return self._pool is not None

    def is_worth(self, done: int, left: int, seconds: float) -> bool:
        """Say whether what is left, after so many items in so many seconds, is worth other processes."""
        if self._size == 1 or left == 1:
            return False
        if self.is_started:
            return True
        return seconds >= self._look and left * seconds >= self._worth * done

    def submit(self, work: Callable[[Item], Result], item: Item) -> Future[tuple[float, Result]]:
        """Have a piece of work done by another process; its result comes with the seconds that it took."""
        if self._pool is None:
            # They are forked by one process that imports what they need once, and holds it in memory once.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(_PRELOADED)
            self._pool = ProcessPoolExecutor(self._size, context, initializer=_settle)
        try:
            return self._pool.submit(_timed, work, item)
        except BrokenProcessPool:
            self.dismiss()
            return self.submit(work, item)

    def dismiss(self) -> None:
        """End the processes, when what they are at is done; what waits is not begun."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class Batch(Generic[Item, Result]):
    """One kind of work for items that come one by one; it is begun as they come where the crew's processes run."""

    def __init__(self, crew: Crew, work: Callable[[Item], Result], lost: Callable[[Item], Result]) -> None:
        self._crew = crew
        self._work = work
        self._lost = lost
        self._items: list[Item] = []
        self._futures: dict[Future[tuple[float, Result]], int] = {}
        self._waiting: deque[int] = deque()

    def add(self, item: Item) -> None:
        """Add an item; it waits for nothing."""
        index = len(self._items)
        self._items.append(item)
        if self._crew.is_started:
            self._submit(index)
        else:
            self._waiting.append(index)

    def results(self, noted: Noted[Item]) -> list[Result]:
        """Return what the work gives for each item, in the order in which they came.

        An exception of the work ends it all.
        """
        found: dict[int, Result] = {}
        begun = perf_counter()
        while self._waiting and not self._crew.is_worth(
            len(found), len(self._waiting), perf_counter() - begun
        ):
            index = self._waiting.popleft()
            seconds, found[index] = _timed(self._work, self._items[index])
            noted(self._items[index], seconds)
        try:
            while self._waiting:
                self._submit(self._waiting.popleft())
            for future in as_completed(self._futures):
                index = self._futures[future]
                if isinstance(future.exception(), BrokenProcessPool):
                    continue
                seconds, found[index] = future.result()
                noted(self._items[index], seconds)
        except BaseException:
            self._crew.dismiss()
            raise
        for index, item in enumerate(self._items):
            if index not in found:
                found[index] = self._alone(item)
                noted(item, 0.0)
        return [found[index] for index in range(len(self._items))]

    def _submit(self, index: int) -> None:
        self._futures[self._crew.submit(self._work, self._items[index])] = index

    def _alone(self, item: Item) -> Result:
        """Do again what was at hand, or waited, when a process ended: one after the other, so that one is to blame."""
        try:
            return self._crew.submit(self._work, item).result()[1]
        except BrokenProcessPool:
            return self._lost(item)


def _timed(work: Callable[[Item], Result], item: Item) -> tuple[float, Result]:
    begun = perf_counter()
    result = work(item)
    return perf_counter() - begun, result


def _settle() -> None:
    """Leave Ctrl-C to the grader, and end with it however it ends: a process without it would wait for ever."""
    # Trainings come first: the class waits for them, and what is scored meanwhile finds time enough beside them.
    os.nice(_NICENESS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()


def _end_with_the_grader() -> None:
    grader = multiprocessing.parent_process()
    assert grader is not None
    multiprocessing.connection.wait([grader.sentinel])
    os._exit(1)
