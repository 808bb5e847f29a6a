"""The replays of a class: read from the cache, or made side by side, each distinct program once."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from operator import attrgetter
from pathlib import Path

from grader.replay.cache import Cache
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.request import Request
from grader.report.text import Progress

Made = tuple[Request, Replay]
# Makes replays and yields each as soon as it is finished.
Executor = Callable[[Sequence[Request]], Generator[Made, None, None]]


class Replays:
    """Every replay that a class needs, kept in the folder `cache`."""

    def __init__(self, executor: Executor, cache: Path) -> None:
        self._executor = executor
        self._cache = Cache(cache, Replay)
        self._known: dict[str, Replay] = {}

    def of(self, request: Request) -> Replay:
        """Return a replay that `make` has made. Raises `LookupError` for any other."""
        replay = self._find(request)
        if replay is None:
            raise LookupError(f"{request.key} was not replayed")
        return replay

    def make(self, stage: str, wanted: Iterable[Request], progress: Progress) -> None:
        """Make the replays that are missing, as a stage of the progress.

        Raises what stopped it (Ctrl-C, a full disk); finished replays are kept.
        """
        wanted = list(wanted)
        # First one replay for each program. If it fails, its message quotes line numbers, so that other texts of the
        # same program need replays of their own.
        for key in attrgetter("key"), attrgetter("text_key"):
            missing: dict[str, Request] = {}
            for request in wanted:
                if self._find(request) is None:
                    missing.setdefault(key(request), request)
            if missing:
                self._make(stage, list(missing.values()), progress)

    def _make(self, stage: str, missing: Sequence[Request], progress: Progress) -> None:
        progress.begin(stage, len(missing))
        with closing(self._executor(missing)) as made:
            for request, replay in made:
                self._keep(request, replay)
                progress.done()

    def _find(self, request: Request) -> Replay | None:
        for key in (request.key, request.text_key):
            if key not in self._known:
                kept = self._cache.get(key)
                if kept is None:
                    continue
                self._known[key] = kept
            return self._known[key]
        return None

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key not in self._known:
            self._known[key] = replay
            if replay.status != "XX" or replay.lasting:  # a fault of ours, or the machine's, may pass
                self._cache.put(key, replay)


def local_executor(replayer: Replayer, jobs: int) -> Executor:
    """Return what makes replays in `jobs` threads of this process. After an interruption it makes no more."""
    return partial(_replay_here, replayer, jobs)


def _replay_here(replayer: Replayer, jobs: int, requests: Sequence[Request]) -> Generator[Made, None, None]:
    pool = ThreadPoolExecutor(jobs)
    waiting: dict[Future[Replay], Request] = {}
    try:
        waiting |= {pool.submit(replayer.replay, request): request for request in requests}
        for future in as_completed(list(waiting)):
            yield waiting.pop(future), future.result()
    finally:
        if waiting:  # Ctrl-C or a full disk
            replayer.stop()
        pool.shutdown(cancel_futures=True)
