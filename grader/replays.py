"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

import errno
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from grader.progress import Progress
from grader.replay import Replay
from grader.replayer import Replayer
from grader.requests import Request
from grader.sandbox.stop import Stopped
from grader.store import Store
from grader.syntax.plain_code import suspicions
from harness.errors import UserError, naming

# A disk that is full or cannot be written to: the next experiment would fare no better.
_NO_DISK = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EROFS])


class Replays:
    """Every replay that one class needs, remembered in the folder `memory`; with `fresh`, all are made anew."""

    def __init__(self, replayer: Replayer, memory: Path, *, jobs: int, fresh: bool) -> None:
        self._replayer = replayer
        self._store = Store(memory, Replay)
        self._jobs = jobs
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
        progress.begin(stage, len(missing))
        pool = ThreadPoolExecutor(self._jobs)
        futures: dict[Future[_Made], tuple[str, Request]] = {}
        try:
            futures |= {pool.submit(self._timed, item[1]): item for item in missing}
            for future in as_completed(futures):
                name, request = futures[future]
                made = future.result()
                self._keep(request, made.replay)
                progress.done(name, made.seconds)
        except BaseException:  # Ctrl-C, a full disk: nobody waits for what runs until it ends by itself
            self._replayer.stop()
            pool.shutdown(cancel_futures=True)
            self._keep_finished(futures)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _keep_finished(self, futures: Mapping["Future[_Made]", tuple[str, Request]]) -> None:
        """Keep what was finished beside the one that failed, where it can be kept."""
        for future, (_, request) in futures.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                with suppress(OSError):
                    self._keep(request, future.result().replay)

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key in self._known:
            return
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)

    def _timed(self, request: Request) -> "_Made":
        begun = perf_counter()
        replay = self._made(request)
        return _Made(replay, perf_counter() - begun)

    def _made(self, request: Request) -> Replay:
        try:
            return _blamed(self._replayer.make(request), request)
        except Stopped:
            raise
        except OSError as error:
            if error.errno not in _NO_DISK:
                return _failed(error)
            with naming(Path(tempfile.gettempdir())):  # where a run without a sandbox writes
                raise
        except UserError as error:  # the data set is not on this machine
            return Replay(status="XX", message=str(error))
        except Exception as error:
            return _failed(error)


class _Made(NamedTuple):
    """A replay, and how long it took."""

    replay: Replay
    seconds: float


def _failed(error: Exception) -> Replay:
    traceback.print_exc()
    return Replay(status="XX", message=f"the grader failed ({type(error).__name__})")


def _blamed(replay: Replay, request: Request) -> Replay:
    """Return the replay, laid at the machine's door where a signal ended a plain experiment (twice, by now).

    A plain experiment raises no signals; a machine that is short of memory kills, and so does whoever watches over it.
    """
    if replay.status == "SG" and not suspicions(request.source):
        message = f"something outside ended it, twice ({replay.message})"
        return Replay(status="XX", message=message)
    return replay
