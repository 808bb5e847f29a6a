"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grader.replay.executor import Executor
from grader.replay.replay import Replay
from grader.replay.requests import Request
from grader.replay.store import Store
from grader.report.progress import Progress

_OPEN_LOOP = re.compile(r"\bwhile\b")


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

    def make(
        self,
        stage: str,
        wanted: Iterable[tuple[str, Request]],
        progress: Progress,
        complete: Callable[[str], None] = lambda name: None,
    ) -> None:
        """Make what is not there yet, as a stage of this name; each request comes with who wants it.

        complete: is told who wants something as soon as all of it is there, while others still wait for theirs.
        """
        wanted = list(wanted)
        waiting = _Waiting(wanted, self._is_known, complete)
        # What one program gives, it gives whatever its text looks like; but where it does not come to its end, the
        # message tells lines of its own text, and others with that program have their own.
        for key in (lambda request: request.key), (lambda request: request.text_key):
            missing = self._missing(wanted, key)
            waiting.look()
            self._make_all(stage, missing, progress, waiting)

    def _missing(
        self, wanted: Iterable[tuple[str, Request]], key: Callable[[Request], str]
    ) -> list[tuple[str, Request]]:
        """Return one request for each key, with the first who wants it."""
        missing: dict[str, tuple[str, Request]] = {}
        for name, request in wanted:
            if self._recalled(request) is None:
                missing.setdefault(key(request), (name, request))
        return list(missing.values())

    def _is_known(self, request: Request) -> bool:
        return request.key in self._known or request.text_key in self._known

    def _recalled(self, request: Request) -> Replay | None:
        for key in (request.key, request.text_key):
            if key not in self._known:
                kept = None if self._fresh else self._store.get(key)
                if kept is None:
                    continue
                self._known[key] = kept
            return self._known[key]
        return None

    def _make_all(
        self, stage: str, missing: Sequence[tuple[str, Request]], progress: Progress, waiting: "_Waiting"
    ) -> None:
        if not missing:
            return
        names = {request.text_key: name for name, request in missing}

        def keep(request: Request, replay: Replay, seconds: float) -> None:
            self._keep(request, replay)
            progress.done(names[request.text_key], seconds)
            waiting.look_at(request)

        progress.begin(stage, len(missing))
        self._executor.replay(sorted((request for _, request in missing), key=_seems_to_end), keep)

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key in self._known:
            return
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)


def _seems_to_end(request: Request) -> bool:
    """Say whether no loop of a text may go on for ever: one that does, begun last, is what a whole class waits for."""
    return not _OPEN_LOOP.search(request.source)


class _Waiting:
    """Those who wait for replays, each until all of its own are there."""

    def __init__(
        self,
        wanted: Iterable[tuple[str, Request]],
        is_known: Callable[[Request], bool],
        complete: Callable[[str], None],
    ) -> None:
        self._is_known = is_known
        self._complete = complete
        self._requests: dict[str, list[Request]] = defaultdict(list)
        self._who: dict[str, dict[str, None]] = defaultdict(dict)
        for name, request in wanted:
            self._requests[name].append(request)
            self._who[request.key][name] = None

    def look(self) -> None:
        """Look at all."""
        self._look(self._requests)

    def look_at(self, request: Request) -> None:
        """Look at those who wait for this one, be it that program in another text."""
        self._look(self._who[request.key])

    def _look(self, names: Iterable[str]) -> None:
        for name in list(names):
            if name in self._requests and all(map(self._is_known, self._requests[name])):
                del self._requests[name]
                self._complete(name)
