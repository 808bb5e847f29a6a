"""Tarballs whose bytes depend on their content alone, and files that appear whole with their SHA-256."""

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.stored_deflate import stored_gzip


def deterministic_tar_gz(members: Mapping[str, bytes | Path]) -> bytes:
    """Return a gzipped tarball of regular files, by name; a path is read.

    Names come sorted, with mode 0644, owner 0 and time 0; a name that the ustar format cannot hold goes
    into a pax header, which has no times either. Nothing is compressed (`harness.stored_deflate` says why).
    Raises `ValueError` for a name that would not unpack inside the folder it is unpacked in.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for name in sorted(members):
            _refuse_unsafe(name)
            content = members[name]
            data = content if isinstance(content, bytes) else content.read_bytes()
            member = tarfile.TarInfo(name)  # mode 0644, owner 0 without a name, time 0
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return stored_gzip(buffer.getvalue())


def _refuse_unsafe(name: str) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a plain path inside a tarball")


def sha256_path(path: Path) -> Path:
    """Return where the digest of a file lies: beside it."""
    return path.with_name(f"{path.name}.sha256")


def sha256_line(data: bytes, name: str) -> str:
    """Return the line that `sha256sum -c` reads."""
    return f"{hashlib.sha256(data).hexdigest()}  {PurePosixPath(name).name}\n"


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Write files that appear whole or not at all.

    All are complete on the disk before the first takes its name, so a full disk or a kill leaves what was
    there. Raises `OSError` where a folder cannot be written to.
    """
    scratches = {path.with_name(f".{path.name}.{os.getpid()}"): path for path in files}
    try:
        for scratch, path in scratches.items():
            with scratch.open("wb") as file:
                file.write(files[path])
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


def pack_folder(folder: Path, path: Path) -> None:
    """Write the files of a folder as `path`, under the folder's name, and `<path>.sha256`."""
    members = {f"{folder.name}/{file.name}": file for file in folder.iterdir() if file.is_file()}
    write_with_sha256(path, deterministic_tar_gz(members))
