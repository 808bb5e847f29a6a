"""Remembers records in a folder: one file each, written whole, checked when it is read."""

import hashlib
import os
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from grader.score import Model
from harness.files import write_whole

Record = TypeVar("Record", bound=Model)


def default_store() -> Path:
    """Return where work is remembered: $TRAINWRECK_REPLAYS, else trainwreck/replays in the user's cache folder."""
    if chosen := os.environ.get("TRAINWRECK_REPLAYS"):
        return Path(chosen).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = shared if shared.is_absolute() else Path("~/.cache").expanduser()
    return home / "trainwreck" / "replays"


class Store(Generic[Record]):
    """Records of one kind by their key, the SHA-256 of all that determines them.

    An entry that is damaged is as good as none: it is made again.
    """

    def __init__(self, folder: Path, kind: type[Record]) -> None:
        self._folder = folder
        self._kind = kind

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Record | None:
        """Return the record of this key, or None."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, _, body = data.partition(b"\n")
        if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            return None
        try:
            return self._kind.model_validate_json(body)
        except ValidationError:
            return None

    def put(self, key: str, record: Record) -> None:
        """Keep a record. Raises `OSError` where the folder cannot be written to."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        body = record.model_dump_json().encode()
        write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)
