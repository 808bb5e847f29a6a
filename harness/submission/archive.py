"""Tarballs whose bytes depend on their content alone."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from harness.files import stored_gzip, write_with_sha256


def deterministic_tar_gz(members: Mapping[str, bytes | Path]) -> bytes:
    """Return a gzipped tarball of regular files, by name; a path is read.

    Names come sorted, with mode 0644, owner 0 and time 0; a name that the ustar format cannot hold goes
    into a pax header, which has no times either. Nothing is compressed (`harness.files` says why).
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


def pack_folder(folder: Path, path: Path) -> None:
    """Write the files of a folder as `path`, under the folder's name, and `<path>.sha256`."""
    members = {f"{folder.name}/{file.name}": file for file in folder.iterdir() if file.is_file()}
    write_with_sha256(path, deterministic_tar_gz(members))
