"""Get the replays for all submissions of a class from the cache, or make them in parallel.

Equal programs share one replay. All replays stay in the cache, which takes 0.5 GB for 2,100 submissions with personal
seeds.
"""

import errno
import hashlib
import os
import re
import stat
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import ValidationError

from grader.intake.folder import HandedIn
from grader.intake.submission import Submission
from grader.progress import ProgressBar
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.request import Request
from harness.errors import name_place
from harness.files import cache_folder, write_whole
from harness.formats.toml_file import StrictModel

Made = tuple[Request, Replay]
# The folder in the cache for replays without a sandbox, which must not be mixed with replays from the sandbox.
NO_SANDBOX = "no-sandbox"
# The file names of cache entries, and of incomplete entries that a killed grader left.
_ENTRY = re.compile(r"\.?[0-9a-f]{64}\.json(\.[0-9a-f]{8})?")
_A_DAY = 86_400.0  # seconds
# How many days an unused entry is kept. A replay takes 75 kB, and all replays of `grader selfcheck` about 0.5 GB.
KEPT_DAYS = 60.0
_QUEUED = 4  # queued replays for each local worker, so that no worker waits while the grader reads and scores
_WAITING = 2  # how many items may wait for each queued replay; a waiting submission takes 0.4 MB
# Keep the last used replays in memory, which takes 20 MB. A fix of one of our exercises is compared with about ten
# programs, and the submissions of several exercises alternate.
_IN_MEMORY = 256
CacheRecord = TypeVar("CacheRecord", bound=StrictModel)
Queued = TypeVar("Queued")
Result = TypeVar("Result")


class Executor(Protocol):
    """Makes replays in parallel."""

    @property
    def most(self) -> int:
        """The maximum number of submitted, unfinished replays. It is large enough that no worker has to wait."""
        ...

    def submit(self, request: Request) -> None:
        """Request a replay, which is made as soon as a worker is free."""

    def wait_for_one(self) -> Made:
        """Wait until one of the submitted replays is finished, and return it."""
        ...

    def close(self) -> None:
        """Stop the unfinished replays."""


@dataclass(frozen=True)
class Waiting(Generic[Queued]):
    """An item, such as a submission, that cannot be processed before at least one replay is made."""

    item: Queued
    requests: Sequence[Request]


class Replays:
    """The replays for a class, stored in the folder `cache`."""

    def __init__(self, executor: Callable[[], Executor], cache: Path) -> None:
        self._executor = executor
        self._cache = Cache(cache, Replay)
        self._passing: dict[
            str, Replay
        ] = {}  # replays that failed because of the machine; a retry may succeed, so they are not cached
        self._read = lru_cache(_IN_MEMORY)(self._read_once)

    def of(self, request: Request) -> Replay:
        """Return the replay for a request. Raises `LookupError` if it was not made."""
        replay = self._find(request)
        if replay is None:
            raise LookupError(f"{request.key} was not replayed")
        return replay

    def has(self, request: Request) -> bool:
        """Return whether the replay for a request was made."""
        return self._find(request) is not None

    def make(self, stage: str, wanted: Iterable[Request], progress: ProgressBar) -> None:
        """Make the replays in `wanted` that are missing, and show their progress as a stage of the progress bar.

        Ctrl-C and errors such as a full disk interrupt the work. Finished replays are kept.
        """
        missing = {request.text_key: request for request in wanted if not self.has(request)}

        def attempt(request: Request) -> Request | Waiting[Request]:
            return request if self.has(request) else Waiting(request, [request])

        progress.begin(stage, len(missing))
        for _ in self.as_ready(missing.values(), attempt):
            progress.done()

    def as_ready(
        self, items: Iterable[Queued], attempt: Callable[[Queued], Result | Waiting[Queued]]
    ) -> Generator[Result, None, None]:
        """Yield the result of `attempt` for each item.

        If `attempt` returns `Waiting`, make the replays that it lists and call `attempt` with the item again. Equal
        programs share a replay, unless the replay fails. Only a few items wait at a time. Ctrl-C and errors such as a
        full disk interrupt the work. Finished replays are kept.
        """
        to_do = deque(items)
        waiting: list[Waiting[Queued]] = []
        asked: set[str] = set()

        def blocked(one: Waiting[Queued]) -> bool:
            return any(request.key in asked for request in one.requests)

        with closing(self._executor()) as executor:
            while to_do or waiting:
                most = executor.most
                # Limit the waiting items, too. Otherwise thousands of items could wait for the same replay.
                while to_do and len(asked) < most and len(waiting) < _WAITING * most:
                    found = attempt(to_do.popleft())
                    if not isinstance(found, Waiting):
                        yield found
                        continue
                    waiting.append(found)
                    for request in found.requests:
                        if request.key not in asked:
                            asked.add(request.key)
                            executor.submit(request)
                if waiting:
                    request, replay = executor.wait_for_one()
                    self._keep(request, replay)
                    asked.remove(request.key)
                    to_do.extendleft(one.item for one in reversed(waiting) if not blocked(one))
                    waiting = [one for one in waiting if blocked(one)]

    def _find(self, request: Request) -> Replay | None:
        for key in (request.key, request.text_key):
            with suppress(LookupError):
                return self._read(key)
        return None

    def _read_once(self, key: str) -> Replay:
        kept = self._passing.get(key) or self._cache.get(key)
        if kept is None:
            raise LookupError(key)  # `lru_cache` does not cache errors, and the replay may be made later
        return kept

    def _keep(self, request: Request, replay: Replay) -> None:
        # The message of a failed run contains line numbers, which are valid only for exactly the same source.
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        self._passing[key] = replay
        if replay.status != "XX" or replay.lasting:
            self._cache.put(key, replay)
            self._read(key)  # keep the replay in memory, because the caller needs it next
            del self._passing[key]


class LocalExecutor:
    """Makes replays in `jobs` threads of this process. After an interruption, it cannot be used any more."""

    def __init__(self, replayer: Replayer, jobs: int) -> None:
        self._replayer = replayer
        self._pool = ThreadPoolExecutor(jobs)
        self._running: dict[Future[Replay], Request] = {}
        self.most = _QUEUED * jobs

    def submit(self, request: Request) -> None:
        """Request a replay, which is made as soon as a thread is free."""
        self._running[self._pool.submit(self._replayer.replay, request)] = request

    def wait_for_one(self) -> Made:
        """Wait until a replay is finished, and return it."""
        future = next(as_completed(self._running))
        return self._running.pop(future), future.result()

    def close(self) -> None:
        """End the threads."""
        if self._running:  # Ctrl-C or a full disk
            self._replayer.stop()
        self._pool.shutdown(cancel_futures=True)


def local_executor(replayer: Replayer, jobs: int) -> Callable[[], Executor]:
    """Return a function that starts a `LocalExecutor` in this process."""
    return partial(LocalExecutor, replayer, jobs)


def default_folder() -> Path:
    """Return the folder of the cache: $TRAINWRECK_REPLAYS, or trainwreck/replays in the user's cache folder."""
    return cache_folder("TRAINWRECK_REPLAYS", "replays")


class Cache(Generic[CacheRecord]):
    """Cached records of one class in a folder. The key of a record is the SHA-256 of everything that determines it.

    A damaged entry is treated as missing. Several processes may use the same folder.
    """

    def __init__(self, folder: Path, kind: type[CacheRecord]) -> None:
        self._folder = folder
        self._kind = kind

    def get(self, key: str) -> CacheRecord | None:
        """Return the record with this key, or None if it is missing or damaged."""
        path = self._path(key)
        try:
            digest, _, body = path.read_bytes().partition(b"\n")
            if digest != hashlib.sha256(body).hexdigest().encode():
                return None
            record = self._kind.model_validate_json(body)
        except (OSError, ValidationError):
            return None
        with suppress(OSError):
            if abs(time.time() - path.stat().st_mtime) > _A_DAY:
                os.utime(path)  # `trim` deletes entries by the time of their last use
        return record

    def put(self, key: str, record: CacheRecord) -> None:
        """Store a record. Raises `OSError` with the name of the folder if it cannot be written."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # otherwise the error would name another file
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        body = record.model_dump_json().encode()
        with name_place(self._folder):
            write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def trim(folder: Path, days: float = KEPT_DAYS) -> tuple[int, int]:
    """Delete the cache entries that were not used for `days` days. Return their number and their size in bytes.

    Other files, and links, are not deleted. If the folder cannot be changed, nothing happens.
    """
    count = size = 0
    # The path of an entry is <kind>/<first two digits>/<key>.json, or the same below the folder `no-sandbox`.
    for depth in ("", "*/", "*/*/"):
        for path in folder.glob(f"{depth}[0-9a-f][0-9a-f]/*.json*"):
            ours = _ENTRY.fullmatch(path.name) and path.name.lstrip(".")[:2] == path.parent.name
            with suppress(OSError):  # another grader may have deleted the file
                status = path.lstat()
                # A hidden file may belong to an entry that another process writes now.
                least = max(days, 1.0) if path.name.startswith(".") else days
                unused = time.time() - status.st_mtime > least * _A_DAY
                if ours and unused and stat.S_ISREG(status.st_mode):
                    path.unlink()
                    count, size = count + 1, size + status.st_size
    return count, size


def order_files(files: Iterable[HandedIn]) -> Iterable[HandedIn | Submission]:
    """Return submitted files in the best order for reading: first one file per exercise, then the rest by exercise.

    The first file of an exercise starts the replays of the broken experiment and of the reference fix, for which all
    other files of the exercise wait. Files of one exercise are read together, because they share logs in memory. The
    exercise is guessed from the end of the file name, where `make submit` writes it. A wrong guess only costs time.
    """

    def last_word(file: HandedIn) -> str:
        return file.name.rpartition("_")[2]

    ordered = sorted(files, key=lambda file: (last_word(file), file.name))
    first = {last_word(file): file for file in reversed(ordered)}
    return sorted(ordered, key=lambda file: file is not first[last_word(file)])
