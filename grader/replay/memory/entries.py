"""The entries of a memory: which there are, and how they are removed while others write beside them."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from grader.replay.folder_lock import locked
from grader.replay.memory.kinds import KINDS, Kind

ENTRY = re.compile(r"[0-9a-f]{64}\.json")
# What an entry begins with: the SHA-256 of the rest.
_HEAD = re.compile(rb"[0-9a-f]{64}\n")
_SHELF = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True)
class Entry:
    """One remembered record as it was found. Its last use is `used_ns`, in nanoseconds since 1970."""

    kind: Kind
    path: Path
    bytes: int
    used_ns: int
    inode: int

    @property
    def used(self) -> float:
        """When it was last used, in seconds since 1970."""
        return self.used_ns / 1e9


def entries_in(memory: Path) -> list[Entry]:
    """Return the entries of every kind; whatever else lies there is none, nor is a link.

    Raises `OSError`, which names the place, where a folder cannot be read.
    """
    return [
        entry
        for kind in KINDS
        for shelf in _shelves(memory / kind.folder)
        for entry in _entries_on(shelf, kind, memory / kind.folder)
    ]


def _shelves(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            names = [item.name for item in found if item.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return sorted(name for name in names if _SHELF.fullmatch(name))


def _entries_on(shelf: str, kind: Kind, folder: Path) -> Iterator[Entry]:
    with os.scandir(folder / shelf) as found:
        for item in found:
            if item.name[:2] != shelf or not ENTRY.fullmatch(item.name):
                continue
            with suppress(FileNotFoundError):  # another grader has just removed it
                if item.is_file(follow_symlinks=False):
                    status = item.stat(follow_symlinks=False)
                    path = folder / shelf / item.name
                    yield Entry(kind, path, status.st_size, status.st_mtime_ns, status.st_ino)


def are_ours(entries: Iterable[Entry]) -> bool:
    """Say whether at least one of these begins as an entry does: others may name their files alike."""
    return any(_HEAD.match(_beginning(entry.path)) for entry in entries)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(65)
    except OSError:
        return b""


@dataclass(frozen=True)
class Removal:
    """The entries that were removed, and what was in the way of others."""

    removed: tuple[Entry, ...]
    problems: tuple[OSError, ...]


def remove(memory: Path, entries: Iterable[Entry], *, wait: bool) -> Removal:
    """Remove entries, while nobody writes there; one that was used since it was found stays.

    Where somebody writes just now and this does not `wait`, those of that kind stay too.
    """
    removed: list[Entry] = []
    problems: list[OSError] = []
    for folder, of_kind in groupby(sorted(entries, key=_folder), _folder):
        try:
            with locked(memory / folder, wait=wait) as alone:
                for entry in of_kind if alone else ():
                    try:
                        if _is_unchanged(entry):
                            entry.path.unlink()
                            removed.append(entry)
                    except FileNotFoundError:
                        pass
                    except OSError as error:
                        problems.append(error)
        except OSError as error:
            problems.append(error)
    return Removal(tuple(removed), tuple(problems))


def _folder(entry: Entry) -> Path:
    return entry.kind.folder


def _is_unchanged(entry: Entry) -> bool:
    status = entry.path.lstat()
    return (status.st_ino, status.st_mtime_ns, status.st_size) == (entry.inode, entry.used_ns, entry.bytes)
