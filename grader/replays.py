"""The replays of a class: what is remembered is not made again, the rest is made side by side."""

import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from grader.replay import Replay
from grader.replayer import Replayer
from grader.requests import Request
from grader.sandbox.stop import Stopped
from grader.store import Store
from harness.errors import UserError

Progress = Callable[[int, int], None]


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
        try:
            futures = {pool.submit(self._made, request): request for request in missing.values()}
            for done, future in enumerate(as_completed(futures), start=1):
                self._keep(futures[future], future.result())
                progress(done, len(missing))
        except BaseException:  # Ctrl-C, a full disk: nobody waits for what runs until it ends by itself
            self._replayer.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _keep(self, request: Request, replay: Replay) -> None:
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        self._known[key] = replay
        if replay.status != "XX":  # a fault of ours may pass
            self._store.put(key, replay)

    def _made(self, request: Request) -> Replay:
        try:
            return self._replayer.make(request)
        except Stopped:
            raise
        except UserError as error:  # the data set is not on this machine
            return Replay(status="XX", message=str(error))
        except Exception as error:
            traceback.print_exc()
            return Replay(status="XX", message=f"the grader failed ({type(error).__name__})")
