"""Worker processes for the work on each submission. A process that dies costs one submission its verdict."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from types import TracebackType
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# A process takes a second to start; so many items are done in this process.
_FEW = 16
_PRELOADED = ["grader.grade"]


class Workers:
    """Up to `jobs` processes, started when there is enough to do. Leaving the context ends them."""

    def __init__(self, jobs: int, *, few: int = _FEW) -> None:
        self._jobs = jobs
        self._few = few
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(
        self, work: Callable[[Item], Result], items: Sequence[Item], lost: Callable[[Item], Result]
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with what `work` returns for it, in any order. An exception of `work` ends it all.

        lost: gives the result of an item that ended its process twice, the second time while it was alone.
        """
        if self._jobs == 1 or len(items) <= self._few:
            for item in items:
                yield item, work(item)
            return
        if self._pool is None:
            self._pool = _pool(self._jobs)
        futures: dict[Future[Result], Item] = {self._pool.submit(work, item): item for item in items}
        unfinished = []
        for future in as_completed(futures):
            if isinstance(future.exception(), BrokenProcessPool):
                unfinished.append(futures[future])
            else:
                yield futures[future], future.result()
        if unfinished:  # one of these ended a process: do each alone, so that the others get their results
            self._pool.shutdown()
            self._pool = None
            yield from _each_alone(work, unfinished, lost)


def _each_alone(
    work: Callable[[Item], Result], items: Sequence[Item], lost: Callable[[Item], Result]
) -> Iterator[tuple[Item, Result]]:
    with ExitStack() as stack:
        pool = stack.enter_context(_pool(1))
        for item in items:
            try:
                yield item, pool.submit(work, item).result()
            except BrokenProcessPool:
                pool = stack.enter_context(_pool(1))
                yield item, lost(item)


def _pool(size: int) -> ProcessPoolExecutor:
    # A server process imports everything once; the workers are forked from it.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return ProcessPoolExecutor(size, context, initializer=_settle)


def _settle() -> None:
    """Leave Ctrl-C to the grader, and end when it ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()


def _end_with_the_grader() -> None:
    grader = multiprocessing.parent_process()
    assert grader is not None
    multiprocessing.connection.wait([grader.sentinel])
    os._exit(1)
