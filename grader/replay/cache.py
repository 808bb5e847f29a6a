"""The cache of replays: one file a record, verified when it is read, deleted when it was not used for long."""

import errno
import hashlib
import os
import re
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from grader.score.verdict import Model
from harness.errors import naming
from harness.files import cache_folder, write_whole

# Replays without a sandbox lie here, apart from the others.
NO_SANDBOX = "no-sandbox"

# Entries, and what killed graders left half-written.
_ENTRY = re.compile(r"\.?[0-9a-f]{64}\.json(\.[0-9a-f]{8})?")
_A_DAY = 86_400.0  # seconds
# A replay takes 75 kB: a course of 2,100 submissions 0.1 GB, a whole self-check some 0.5 GB.
KEPT_DAYS = 60.0

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
                os.utime(path)  # the time of the last use decides when it is deleted
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
