"""Files of a folder: what is in them, which they are, and which of them are only half there."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from faults.held import must

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
