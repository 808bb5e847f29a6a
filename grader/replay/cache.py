"""The cache of replays: one file a record, verified when it is read, bounded by deleting the oldest."""

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from grader.score.verdict import Model
from harness.errors import UserError, naming
from harness.files import cache_folder, write_whole

LIMIT_VARIABLE = "TRAINWRECK_REPLAYS_LIMIT"
# A replay takes 75 kB: a course of 2,100 submissions 0.1 GB, a whole self-check some 0.5 GB.
DEFAULT_LIMIT = 2 * 10**9  # bytes
# Replays without a sandbox lie here, apart from the others.
NO_SANDBOX = "no-sandbox"

_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(MB|GB|TB)", re.IGNORECASE | re.ASCII)
_ENTRY = re.compile(r"[0-9a-f]{64}\.json")
_SCRATCH = re.compile(r"\.[0-9a-f]{64}\.json\.[0-9a-f]{8}")
_A_DAY = 86_400.0  # seconds

Record = TypeVar("Record", bound=Model)


def default_folder() -> Path:
    """Return the folder of the cache: $TRAINWRECK_REPLAYS, or trainwreck/replays in the user's cache folder."""
    return cache_folder("TRAINWRECK_REPLAYS", "replays")


class Cache(Generic[Record]):
    """Records of one kind in a folder, each under the SHA-256 of everything that determines it.

    A damaged entry counts as missing. Any number of processes may share the folder.
    """

    def __init__(self, folder: Path, kind: type[Record]) -> None:
        self._folder = folder
        self._kind = kind

    def get(self, key: str) -> Record | None:
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
                os.utime(path)  # the time of the last use decides what is deleted first
        return record

    def put(self, key: str, record: Record) -> None:
        """Keep a record. Raises `OSError`, which names the place, if the folder cannot be written to."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # replacing it would raise an error that names another file
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        body = record.model_dump_json().encode()
        with naming(self._folder):
            write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def size_limit() -> int:
    """Return the limit in bytes: $TRAINWRECK_REPLAYS_LIMIT, or 2 GB. Raises `UserError` if that is not a size."""
    chosen = os.environ.get(LIMIT_VARIABLE)
    if not chosen:
        return DEFAULT_LIMIT
    size = _SIZE.fullmatch(chosen.strip())
    if size is None:
        raise UserError(f"{LIMIT_VARIABLE} is {chosen[:40]!r}, which is not a size: write 500MB or 2.5GB.")
    return round(float(size[1]) * _UNITS[size[2].upper()])


class Entry(NamedTuple):
    """A file of the cache: when it was last used (seconds since 1970), its size in bytes, and its path."""

    used: float
    size: int
    path: Path


def entries(folder: Path) -> list[Entry]:
    """Return the entries of every kind below the folder, the oldest first. Links and other files are none."""
    return sorted(_files(folder, _ENTRY))


def _files(folder: Path, name: re.Pattern[str]) -> Iterator[Entry]:
    # <kind>/<first two digits>/<key>.json; a kind may lie below `no-sandbox`.
    for depth in ("", "*/", "*/*/"):
        for path in folder.glob(f"{depth}[0-9a-f][0-9a-f]/*.json*"):
            if name.fullmatch(path.name) and path.name.lstrip(".")[:2] == path.parent.name:
                with suppress(FileNotFoundError):  # another grader has just deleted it
                    status = path.lstat()
                    if path.is_file() and not path.is_symlink():
                        yield Entry(status.st_mtime, status.st_size, path)


def trim(folder: Path) -> None:
    """Delete the oldest entries until the cache is within its limit, and what killed graders left half-written.

    Does nothing to a folder that cannot be changed. Raises `UserError` if the limit is not a size.
    """
    excess = -size_limit()
    with suppress(OSError):
        found = entries(folder)
        excess += sum(entry.size for entry in found)
        for entry in found:
            if excess <= 0:
                break
            entry.path.unlink(missing_ok=True)
            excess -= entry.size
        for entry in _files(folder, _SCRATCH):
            if time.time() - entry.used > _A_DAY:  # nobody writes for so long
                entry.path.unlink(missing_ok=True)


def clear(folder: Path) -> list[Entry]:
    """Delete all entries and return them. Other files stay."""
    found = entries(folder)
    for entry in found:
        entry.path.unlink(missing_ok=True)
    return found
