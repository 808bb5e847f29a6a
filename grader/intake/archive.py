"""Read an untrusted tarball in memory, with limits on its size. It may contain only regular files with plain names.

The tar headers are read one by one with `tarfile.TarInfo.frombuf`. `tarfile.open` is not safe enough: it stops silently
at an invalid header, follows extension headers recursively, and takes seconds for some extension headers.
"""

import errno
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from harness.errors import printable
from harness.submission.limits import EXTENSION_BYTES, MEMBERS, MIB, NAME_BYTES, TARBALL_BYTES, size_excess

# The size of a piece: the archive is decompressed in pieces, so that the memory never exceeds the limits.
_CHUNK = MIB // 4
# A gzip file may be larger than its content by at most this number of bytes. A file of empty deflate blocks takes up to
# 9 s to decompress, but has no content that the other limits would count. No ordinary program writes such a file.
_OVERHEAD_BYTES = MIB
_BLOCK = tarfile.BLOCKSIZE
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_EXTENSIONS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
_REFUSED = {
    tarfile.SYMTYPE: ("link", "a symbolic link"),
    tarfile.LNKTYPE: ("link", "a hard link"),
    tarfile.GNUTYPE_LONGLINK: ("link", "a link"),
    tarfile.CHRTYPE: ("device", "a device"),
    tarfile.BLKTYPE: ("device", "a device"),
    tarfile.FIFOTYPE: ("device", "a pipe"),
    tarfile.GNUTYPE_SPARSE: ("sparse file", "a sparse file"),
    tarfile.CONTTYPE: ("unknown member", "a contiguous file"),
}
_GZIP = b"\x1f\x8b\x08"
REMEDY = "hand in the .tar.gz file that make submit wrote"
AGAIN = "run make submit again, and hand in the new .tar.gz file"


class Rejected(Exception):
    """Raised for an archive that cannot be graded. It has a code for programs and a message for the student.

    student, recipe: the names in the manifest, or None if the manifest could not be read.
    """

    def __init__(self, code: str, message: str, student: str | None = None, recipe: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.student = student
        self.recipe = recipe


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file. Raises `Rejected` for a link, a folder, a pipe or a device, and `OSError` if open fails."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _no_file()
    try:
        # Since the check above, another process may have replaced the file by a pipe or a link.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _no_file() from None
        raise
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise _no_file()
    return file


def read_tarball(file: IO[bytes]) -> bytes:
    """Return the bytes of a file. Raises `Rejected` if the file is larger than `TARBALL_BYTES`."""
    data = file.read(TARBALL_BYTES + 1)
    if len(data) > TARBALL_BYTES:
        limit = TARBALL_BYTES // MIB
        raise Rejected("archive too large", f"The archive is larger than {limit} MiB: {REMEDY}.")
    return data


def _no_file() -> Rejected:
    return Rejected("not a file", f"The submission is a link, a folder or a device, not a file: {REMEDY}.")


def gunzip(data: bytes) -> bytes:
    """Return the content of a gzip file. Raises `Rejected` unless the data is exactly one complete gzip file."""
    if not data.startswith(_GZIP):
        raise Rejected("not a tarball", f"The file is {'not a gzip file' if data else 'empty'}: {REMEDY}.")
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    pieces, size, position, waiting = [], 0, 0, b""
    while not stream.eof:
        if not waiting:
            waiting = data[position : position + _CHUNK]
            position += len(waiting)
        try:
            piece = stream.decompress(waiting, _CHUNK)
        except zlib.error:
            raise Rejected("damaged archive", f"The archive is damaged: {AGAIN}.") from None
        waiting = stream.unconsumed_tail
        size += len(piece)
        if size > TARBALL_BYTES:
            limit = TARBALL_BYTES // MIB
            raise Rejected("unpacks too large", f"The archive contains more than {limit} MiB: {REMEDY}.")
        if position - len(waiting) > size + _OVERHEAD_BYTES:
            raise Rejected("damaged archive", f"The archive is much larger than its content: {AGAIN}.")
        pieces.append(piece)
        if not piece and not waiting and position == len(data) and not stream.eof:
            raise Rejected("truncated archive", f"The archive ends too early: {AGAIN}.")
    if stream.unused_data or position < len(data):
        raise Rejected("trailing data", f"There is data after the end of the archive: {REMEDY}, unchanged.")
    return b"".join(pieces)


def read_members(tar: bytes, members: dict[str, bytes]) -> None:
    """Add the files of a tar archive to `members`, by name.

    Raises `Rejected` for a member that is neither a regular file nor a folder. Earlier members stay in `members`.
    """
    longer = ""
    for headers, (position, info) in enumerate(_headers(tar), start=1):
        if headers > MEMBERS:
            raise Rejected("too many files", f"The archive has more than {MEMBERS} members: {REMEDY}.")
        content = tar[position : position + info.size]
        if info.type in _EXTENSIONS:
            longer = _longer_name(info, content) or longer
            continue
        name = plain_name(longer or info.name)
        longer = ""
        if info.type == tarfile.DIRTYPE or (info.type in _FILES and info.name.endswith("/")):
            continue
        code, what = _REFUSED.get(info.type, ("unknown member", "of an unknown type"))
        if info.type not in _FILES:
            raise Rejected(code, f"{printable(name)} in the archive is {what}: {REMEDY}.")
        if excess := size_excess("", info.size):
            raise Rejected(excess.code, f"{printable(name)} in the archive {excess.says}: {excess.cure}.")
        if name in members:
            raise Rejected("duplicate name", f"The archive contains {printable(name)} twice.")
        members[name] = content


def _headers(tar: bytes) -> Iterator[tuple[int, tarfile.TarInfo]]:
    """Yield the position of each member's content and its header. Raises `Rejected` for a damaged archive."""
    position = 0
    while (block := tar[position : position + _BLOCK]).strip(b"\0") and len(block) == _BLOCK:
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except UnicodeDecodeError:
            raise Rejected("unprintable name", f"A name in the archive is not UTF-8: {REMEDY}.") from None
        except (tarfile.HeaderError, ValueError):
            what = "The file is not a tar archive" if position == 0 else "The archive has a damaged header"
            raise Rejected("damaged archive", f"{what}: {REMEDY}.") from None
        start = position + _BLOCK
        if info.size < 0:
            raise Rejected("damaged archive", f"The archive has a file with a negative size: {REMEDY}.")
        position = start + -(-info.size // _BLOCK) * _BLOCK
        if position > len(tar):
            raise Rejected("truncated archive", f"The archive ends inside {printable(info.name)}: {REMEDY}.")
        yield start, info
    # Two blocks of zeros mark the end of the archive. Programs may add more zeros.
    if len(tar) - position < 2 * _BLOCK:
        raise Rejected("truncated archive", f"The archive ends too early: {AGAIN}.")
    if tar[position:].strip(b"\0"):
        raise Rejected("trailing data", f"There is data after the end of the archive: {REMEDY}, unchanged.")


def _longer_name(info: tarfile.TarInfo, content: bytes) -> str:
    """Return the name that an extension header sets for the next member, or ""."""
    if info.size > EXTENSION_BYTES:
        raise Rejected("name too long", f"A header in the archive is longer than {EXTENSION_BYTES} bytes.")
    try:
        if info.type == tarfile.GNUTYPE_LONGNAME:
            return content.removesuffix(b"\0").decode("utf-8")
        records = dict(_pax_records(content))
        name = records.get(b"path", b"").decode("utf-8")
    except UnicodeDecodeError:
        raise Rejected("unprintable name", f"A name in the archive is not UTF-8: {REMEDY}.") from None
    except ValueError:
        raise Rejected("damaged archive", f"The archive has a damaged header: {REMEDY}.") from None
    if any(key.startswith(b"GNU.sparse") for key in records):
        raise Rejected("sparse file", f"The archive has a sparse file: {REMEDY}.")
    if b"size" in records or b"linkpath" in records or (name and info.type == tarfile.XGLTYPE):
        raise Rejected("lying header", f"A header in the archive contradicts the next header: {REMEDY}.")
    return name


def _pax_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value of each record `length key=value\\n` in a pax header.

    Raises `ValueError` for an invalid record.
    """
    while content:
        length, space, _ = content.partition(b" ")
        if not space or len(length) > 4 or not length.isdigit():
            raise ValueError("no length")
        record, content = content[: int(length)], content[int(length) :]
        if len(record) != int(length) or not record.endswith(b"\n") or len(record) <= len(length) + 1:
            raise ValueError("another length")
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals:
            raise ValueError("no value")
        yield key, value


def plain_name(name: str) -> str:
    """Return the name without the leading `./`, which `tar czf x.tar.gz .` writes.

    Raises `Rejected` for a name that is absolute, leads out of the folder, is too long, or has invisible characters.
    """
    if len(name.encode("utf-8", "replace")) > NAME_BYTES:
        raise Rejected("name too long", f"A name in the archive is longer than {NAME_BYTES} bytes.")
    where = f"The name {printable(name)} in the archive"
    if not name.isprintable():
        raise Rejected("unprintable name", f"{where} has invisible characters.")
    if name.startswith("/") or "\\" in name or name[1:2] == ":":
        raise Rejected("absolute name", f"{where} is not a plain relative path.")
    parts = name.removeprefix("./").rstrip("/").split("/")
    if ".." in parts:
        raise Rejected("path traversal", f"{where} leads out of its folder.")
    if any(part in ("", ".") for part in parts) and name not in (".", "./"):
        raise Rejected("absolute name", f"{where} is not a plain relative path.")
    return "/".join(parts)
