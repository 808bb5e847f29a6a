"""Files that appear whole or not at all, and the digests beside them."""

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path, PurePosixPath


def sha256_path(path: Path) -> Path:
    """Return where the digest of a file lies: beside it."""
    return path.with_name(f"{path.name}.sha256")


def sha256_line(data: bytes, name: str) -> str:
    """Return the line that `sha256sum -c` reads."""
    return f"{hashlib.sha256(data).hexdigest()}  {PurePosixPath(name).name}\n"


def scratch_path(path: Path) -> Path:
    """Return a name beside `path` to write under before it takes its place: another for every writer."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def write_whole(files: Mapping[Path, bytes], *, durable: bool = True) -> None:
    """Write files that appear whole or not at all.

    All are complete on the disk before the first takes its name, so a full disk or a kill leaves what was
    there; after a loss of power too, where `durable`, which waits for the disk. Raises `OSError` where a
    folder cannot be written to.
    """
    scratches = {scratch_path(path): path for path in files}
    try:
        for scratch, path in scratches.items():
            with scratch.open("wb") as file:
                file.write(files[path])
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
        for scratch, path in scratches.items():
            scratch.replace(path)
    finally:
        for scratch in scratches:
            scratch.unlink(missing_ok=True)


def write_with_sha256(path: Path, data: bytes) -> None:
    """Write a file and `<path>.sha256`, which `sha256sum -c` reads in the same folder."""
    write_whole({path: data, sha256_path(path): sha256_line(data, path.name).encode()})
