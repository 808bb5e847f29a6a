"""The replays of a class: read from the cache, or made side by side, each distinct program once.

They stay in the cache: a class of 2,100 submissions with personal seeds has 0.5 GB of them.
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
# Replays without a sandbox lie here, apart from the others.
NO_SANDBOX = "no-sandbox"
# Entries, and what killed graders left half-written.
_ENTRY = re.compile(r"\.?[0-9a-f]{64}\.json(\.[0-9a-f]{8})?")
_A_DAY = 86_400.0  # seconds
# A replay takes 75 kB, and a whole self-check some 0.5 GB.
KEPT_DAYS = 60.0
_QUEUED = 4  # replays for each local worker: it finds the next one while the grader reads and scores
_WAITING = 2  # items for each queued replay; a submission takes 0.4 MB
_IN_MEMORY = 64  # replays that were used last: 5 MB
CacheRecord = TypeVar("CacheRecord", bound=StrictModel)
Queued = TypeVar("Queued")
Result = TypeVar("Result")


class Executor(Protocol):
    """Makes replays side by side."""

    @property
    def most(self) -> int:
        """How many replays to submit at a time, so that no worker waits for the next one."""
        ...

    def submit(self, request: Request) -> None:
        """Make a replay as soon as a worker is free."""

    def wait_for_one(self) -> Made:
        """Wait until one of the submitted replays is finished, and return it."""
        ...

    def close(self) -> None:
        """Stop what is not finished."""


@dataclass(frozen=True)
class Waiting(Generic[Queued]):
    """An item that cannot go on before these replays are made. There is at least one."""

    item: Queued
    requests: Sequence[Request]


class Replays:
    """Every replay that a class needs, kept in the folder `cache`."""

    def __init__(self, executor: Callable[[], Executor], cache: Path) -> None:
        self._executor = executor
        self._cache = Cache(cache, Replay)
        self._passing: dict[str, Replay] = {}  # faults of the machine, which may pass, are no part of the cache
        self._read = lru_cache(_IN_MEMORY)(self._read_once)

    def of(self, request: Request) -> Replay:
        """Return a replay that is known. Raises `LookupError` for any other."""
        replay = self._find(request)
        if replay is None:
            raise LookupError(f"{request.key} was not replayed")
        return replay

    def has(self, request: Request) -> bool:
        """Return whether the replay of a request is known."""
        return self._find(request) is not None

    def make(self, stage: str, wanted: Iterable[Request], progress: ProgressBar) -> None:
        """Make the replays that are missing, as a stage of the progress.

        Raises what stopped it (Ctrl-C, a full disk); finished replays are kept.
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
        """Yield what `attempt` returns for each item; if it returns `Waiting`, make the replays and attempt it again.

        Equal programs share a replay, unless it fails. Few items wait at a time. Raises what stopped it (Ctrl-C, a full
        disk); finished replays are kept.
        """
        to_do = deque(items)
        waiting: list[Waiting[Queued]] = []
        asked: set[str] = set()

        def blocked(one: Waiting[Queued]) -> bool:
            return any(request.key in asked for request in one.requests)

        with closing(self._executor()) as executor:
            while to_do or waiting:
                most = executor.most
                # Many items may wait for the same replay, which keeps one worker busy.
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
            raise LookupError(key)  # an error is not remembered: it may be made later
        return kept

    def _keep(self, request: Request, replay: Replay) -> None:
        # A message about a failed run quotes line numbers, which hold for its own text alone.
        key = request.key if replay.status in ("OK", "XX") else request.text_key
        self._passing[key] = replay
        if replay.status != "XX" or replay.lasting:
            self._cache.put(key, replay)
            self._read(key)  # keeps it in memory: else it would be read from the folder again at once
            del self._passing[key]


class LocalExecutor:
    """Makes replays in `jobs` threads of this process. After an interruption it makes no more."""

    def __init__(self, replayer: Replayer, jobs: int) -> None:
        self._replayer = replayer
        self._pool = ThreadPoolExecutor(jobs)
        self._running: dict[Future[Replay], Request] = {}
        self.most = _QUEUED * jobs

    def submit(self, request: Request) -> None:
        """Make a replay as soon as a thread is free."""
        self._running[self._pool.submit(self._replayer.replay, request)] = request

    def wait_for_one(self) -> Made:
        """Wait until one of the replays is finished, and return it."""
        future = next(as_completed(self._running))
        return self._running.pop(future), future.result()

    def close(self) -> None:
        """End the threads."""
        if self._running:  # Ctrl-C or a full disk
            self._replayer.stop()
        self._pool.shutdown(cancel_futures=True)


def local_executor(replayer: Replayer, jobs: int) -> Callable[[], Executor]:
    """Return a function that starts an executor in this process."""
    return partial(LocalExecutor, replayer, jobs)


def default_folder() -> Path:
    """Return the folder of the cache: $TRAINWRECK_REPLAYS, or trainwreck/replays in the user's cache folder."""
    return cache_folder("TRAINWRECK_REPLAYS", "replays")


class Cache(Generic[CacheRecord]):
    """Records of one kind in a folder, each under the SHA-256 of everything that determines it.

    A damaged entry counts as missing. Any number of processes may share the folder.
    """

    def __init__(self, folder: Path, kind: type[CacheRecord]) -> None:
        self._folder = folder
        self._kind = kind

    def get(self, key: str) -> CacheRecord | None:
        """Return the record of a key, or None if it is missing or damaged."""
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
                os.utime(path)  # the time of the last use decides when it is deleted
        return record

    def put(self, key: str, record: CacheRecord) -> None:
        """Keep a record. Raises `OSError`, which names the place, if the folder cannot be written to."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # replacing it would raise an error that names another file
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        body = record.model_dump_json().encode()
        with name_place(self._folder):
            write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def trim(folder: Path, days: float = KEPT_DAYS) -> tuple[int, int]:
    """Delete the entries of every kind that were not used for so many days; return how many, and their bytes.

    Other files and links stay. Nothing happens to a folder that cannot be changed.
    """
    count = size = 0
    # <kind>/<first two digits>/<key>.json; a kind may lie below `no-sandbox`.
    for depth in ("", "*/", "*/*/"):
        for path in folder.glob(f"{depth}[0-9a-f][0-9a-f]/*.json*"):
            ours = _ENTRY.fullmatch(path.name) and path.name.lstrip(".")[:2] == path.parent.name
            with suppress(OSError):  # another grader may have deleted it
                status = path.lstat()
                # Somebody may write a hidden one right now.
                least = max(days, 1.0) if path.name.startswith(".") else days
                unused = time.time() - status.st_mtime > least * _A_DAY
                if ours and unused and stat.S_ISREG(status.st_mode):
                    path.unlink()
                    count, size = count + 1, size + status.st_size
    return count, size


def order_files(files: Iterable[HandedIn]) -> Iterable[HandedIn | Submission]:
    """Return the files in the order in which they are read: one of each exercise, then the others by exercise.

    The first ones ask for the suite's own runs of all exercises, for which the others wait. Those of one exercise share
    logs, which are read once. The last word of a file's name stands for the exercise here, because make submit ends
    names with it. A wrong guess costs time and nothing else.
    """

    def last_word(file: HandedIn) -> str:
        return file.name.rpartition("_")[2]

    ordered = sorted(files, key=lambda file: (last_word(file), file.name))
    first = {last_word(file): file for file in reversed(ordered)}
    return sorted(ordered, key=lambda file: file is not first[last_word(file)])
