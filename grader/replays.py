"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grader.executor import Executor
from grader.progress import Progress
from grader.replay import Replay
from grader.requests import Request
from grader.store import Store


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

    def make(self, stage: str, wanted: Iterable[tuple[str, Request]], progress: Progress) -> None:
        """Make what is not there yet, as a stage of this name; each request comes with who wants it."""
        wanted = list(wanted)
        self._make_all(stage, self._missing(wanted, lambda request: request.key), progress)
        # What one program gives, it gives whatever its text looks like; but where it does not come to its end, the
        # message tells lines of its own text, and others with that program have their own.
        self._make_all(stage, self._missing(wanted, lambda request: request.text_key), progress)

    def _missing(
        self, wanted: Iterable[tuple[str, Request]], key: Callable[[Request], str]
    ) -> list[tuple[str, Request]]:
        """Return one request for each key, with the first who wants it."""
        missing: dict[str, tuple[str, Request]] = {}
        for name, request in wanted:
            if self._recalled(request) is None:
                missing.setdefault(key(request), (name, request))
        return list(missing.values())

    def _recalled(self, request: Request) -> Replay | None:
        for key in (request.key, request.text_key):
            if key not in self._known:
                kept = None if self._fresh else self._store.get(key)
                if kept is None:
                    continue
                self._known[key] = kept
            return self._known[key]
        return None

    def _make_all(self, stage: str, missing: Sequence[tuple[str, Request]], progress: Progress) -> None:
        if not missing:
            return
        names = {request.text_key: name for name, request in missing}

        def keep(request: Request, replay: Replay, seconds: float) -> None:
            self._keep(request, replay)
            progress.done(names[request.text_key], seconds)

        progress.begin(stage, len(missing))
        self._executor.replay([request for _, request in missing], keep)

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key in self._known:
            return
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)
