"""Remembers records in a folder: one file each, written whole, checked when it is read."""

import errno
import hashlib
import os
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from grader.replay.folder_lock import locked
from grader.replay.leftovers import remove_leftovers
from grader.replay.memory.entries import ENTRY
from grader.replay.memory.last_use import note_use
from grader.score.verdict import Model
from harness.errors import naming
from harness.files import write_whole

Record = TypeVar("Record", bound=Model)


class Damaged(Exception):
    """An entry that cannot be used; the message says what is wrong with it."""


def default_store() -> Path:
    """Return where work is remembered: $TRAINWRECK_REPLAYS, else trainwreck/replays in the user's cache folder."""
    if chosen := os.environ.get("TRAINWRECK_REPLAYS"):
        return Path(chosen).expanduser()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    home = shared if shared.is_absolute() else Path("~/.cache").expanduser()
    return home / "trainwreck" / "replays"


def read_record(data: bytes, kind: type[Record]) -> Record:
    """Return the record that an entry holds. Raises `Damaged` where it is not whole, or no record of this kind."""
    digest, _, body = data.partition(b"\n")
    if digest.decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
        raise Damaged("its digest is another")
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        raise Damaged("it is whole, but of another form: another version may have written it") from None


class Store(Generic[Record]):
    """Records of one kind by their key, the SHA-256 of all that determines them.

    An entry that is damaged is as good as none: it is made again. Any number of processes may share the folder.
    """

    def __init__(self, folder: Path, kind: type[Record]) -> None:
        self._folder = folder
        self._kind = kind
        self._cleared = False

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Record | None:
        """Return the record of this key, or None."""
        path = self._path(key)
        try:
            record = read_record(path.read_bytes(), self._kind)
        except (OSError, Damaged):
            return None
        note_use(path)
        return record

    def put(self, key: str, record: Record) -> None:
        """Keep a record. Raises `OSError`, which names the place, where the folder cannot be written to."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():  # what fails otherwise names another file
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        body = record.model_dump_json().encode()
        self._clear()
        with naming(self._folder), locked(self._folder, shared=True, wait=True):
            write_whole({path: hashlib.sha256(body).hexdigest().encode() + b"\n" + body}, durable=False)
        note_use(path)

    def note_use(self, key: str) -> None:
        """Note that another process of this run has read or written the record of this key."""
        note_use(self._path(key))

    def _clear(self) -> None:
        """Remove, once, what killed processes left half-written; while nobody writes, for it might be theirs."""
        if not self._cleared:
            with locked(self._folder) as alone:
                if alone:
                    folders = self._folder.glob("[0-9a-f][0-9a-f]")
                    remove_leftovers(folders, lambda name: ENTRY.fullmatch(name) is not None)
                    self._cleared = True
