"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

import errno
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from grader.replay import Replay
from grader.replayer import Replayer
from grader.requests import Request
from grader.sandbox.stop import Stopped
from grader.store import Store
from grader.syntax.plain_code import suspicions
from harness.errors import UserError, naming

Progress = Callable[[int, int], None]

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
        progress(0, len(missing))
        pool = ThreadPoolExecutor(self._jobs)
        futures: dict[Future[Replay], Request] = {}
        try:
            futures |= {pool.submit(self._made, request): request for request in missing.values()}
            for done, future in enumerate(as_completed(futures), start=1):
                self._keep(futures[future], future.result())
                progress(done, len(missing))
        except BaseException:  # Ctrl-C, a full disk: nobody waits for what runs until it ends by itself
            self._replayer.stop()
            pool.shutdown(cancel_futures=True)
            self._keep_finished(futures)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _keep_finished(self, futures: Mapping[Future[Replay], Request]) -> None:
        """Keep what was finished beside the one that failed, where it can be kept."""
        for future, request in futures.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                with suppress(OSError):
                    self._keep(request, future.result())

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        if key in self._known:
            return
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)

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
