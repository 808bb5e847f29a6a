"""Makes replays in threads of this process."""

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from time import perf_counter

from grader.replay.attempt import attempt
from grader.replay.executor import Keep
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.requests import Request


class LocalExecutor:
    """Makes so many replays at a time as there are `jobs`."""

    def __init__(self, replayer: Replayer, *, jobs: int) -> None:
        self._replayer = replayer
        self._jobs = jobs

    def replay(self, requests: Iterable[Request], keep: Keep) -> None:
        """Make the replays; see `Executor`. Once one has raised, no more can be made."""
        pool = ThreadPoolExecutor(self._jobs)
        futures: dict[Future[tuple[Replay, float]], Request] = {}
        try:
            futures |= {pool.submit(self._timed, request): request for request in requests}
            for future in as_completed(list(futures)):
                keep(futures[future], *future.result())
                del futures[future]
        except BaseException:  # Ctrl-C, a full disk: nobody waits for what runs until it ends by itself
            self._replayer.stop()
            pool.shutdown(cancel_futures=True)
            for future, request in futures.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    with suppress(OSError):
                        keep(request, *future.result())
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _timed(self, request: Request) -> tuple[Replay, float]:
        begun = perf_counter()
        return attempt(self._replayer, request), perf_counter() - begun
