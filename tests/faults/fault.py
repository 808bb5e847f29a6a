"""What a fault is: something that befalls the grader, and what must come of it."""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from faults.lab import Lab, Place


@dataclass(frozen=True)
class Fault:
    """`play` does it and returns what was seen; it raises `NotHeld` where that is not what must come of it.

    in_suite: whether the tests do it too.
    """

    id: str
    says: str
    expected: str
    play: Callable[["Lab", "Place"], str]
    in_suite: bool = True


@dataclass(frozen=True)
class Outcome:
    """What came of a fault, and whether that is what must come of it."""

    fault: Fault
    held: Literal["yes", "NO", "not tried"]
    seen: str


class NotHeld(AssertionError):
    """What was seen is not what must come of a fault."""


class Absent(Exception):
    """This machine cannot do it: the sentence says why."""


def must(condition: bool, words: str) -> None:
    """Raise `NotHeld` with these words unless it is so."""
    if not condition:
        raise NotHeld(words)


Files = dict[str, bytes]
Stamp = tuple[int, int, bytes]  # inode, time of the last change, content

_SCRATCH = re.compile(r"\..+\.[0-9a-f]{8}", re.DOTALL)


def content(folder: Path) -> Files:
    """Return every file in a folder and below it, hidden ones too, by its path there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def is_scratch(name: str) -> bool:
    """Say whether a file was never finished, by its name."""
    return _SCRATCH.fullmatch(name.rpartition("/")[2]) is not None


def stamps(store: Path) -> dict[str, Stamp]:
    """Return the entries of a store by their names, and which files they are. Raises `NotHeld` for half an entry."""
    found = {}
    for path in sorted(store.rglob("*.json")):
        data = path.read_bytes()
        status = path.stat()
        digest, _, body = data.partition(b"\n")
        must(digest == hashlib.sha256(body).hexdigest().encode(), f"half an entry: {path.name}")
        found[path.relative_to(store).as_posix()] = (status.st_ino, status.st_mtime_ns, data)
    return found
