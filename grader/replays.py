"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path

from grader.executor import Executor
from grader.replay import Replay
from grader.requests import Request
from grader.store import Store

Progress = Callable[[int, int], None]


class Replays:
    """Every replay that one class needs, remembered in the folder `memory`; with `fresh`, all are made anew."""

    def __init__(self, executor: Executor, memory: Path, *, fresh: bool) -> None:
        self._executor = executor
        self._store = Store(memory, Replay)
        self._fresh = fresh
        self._known: dict[str, Replay] = {}

    def of(self, request: Request) -> Replay:
        """Return a replay that `make` has made. Raises `LookupError` for any other."""
        replay = self._recalled(request)
        if replay is None:
            raise LookupError(f"{request.key} was not replayed")
        return replay

    def make(self, requests: Iterable[Request], progress: Progress) -> None:
        """Make what is not there yet; `progress(done, all)` counts it."""
        requests = list(requests)
        self._make_all({item.key: item for item in requests if self._recalled(item) is None}, progress)
        # What one program gives, it gives whatever its text looks like; but where it does not come to its end, the
        # message tells lines of its own text, and others with that program have their own.
        others = {item.text_key: item for item in requests if self._recalled(item) is None}
        if others:
            self._make_all(others, progress)

    def _recalled(self, request: Request) -> Replay | None:
        for key in (request.key, request.text_key):
            if key not in self._known:
                kept = None if self._fresh else self._store.get(key)
                if kept is None:
                    continue
                self._known[key] = kept
            return self._known[key]
        return None

    def _make_all(self, missing: Mapping[str, Request], progress: Progress) -> None:
        done = count()

        def keep(request: Request, replay: Replay) -> None:
            self._keep(request, replay)
            progress(next(done), len(missing))

        progress(next(done), len(missing))
        self._executor.replay(missing.values(), keep)

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key in self._known:
            return
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)
