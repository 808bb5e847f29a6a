"""Read an untrusted zip, with limits on its size. Nothing is unpacked, and names of members are never used as paths.

`zipfile` reads only the directory of the zip (its table of contents). This module reads the content of one member at a
time. It takes the position and the size of each member from the directory only.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import IO

from grader.intake.archive import AGAIN, REMEDY, Rejected, plain_name
from harness.submission.limits import MIB, TARBALL_BYTES

# A zip with 2,100 submissions has a directory of 0.6 MB. Python needs ten times as much memory to read this directory.
_DIRECTORY_BYTES = 4 * MIB
_MEMBERS = 10_000
# The limits for a zip that a student made, with only a few tarballs. Each tarball decompresses the whole zip again, so
# a large number of tarballs would take too long.
_FEW_DIRECTORY_BYTES = MIB // 8
_FEW_MEMBERS = 50
# The largest allowed ratio of the unpacked to the packed size. It is 10 for logs and 1000 for a zip bomb.
_RATIO = 100


@dataclass(frozen=True)
class Member:
    """A member of a zip. If the name ends with /, the member is a folder.

    date: the date of the member in UTC; None if invalid. A zip has no time zone, so we assume the time zone of this
        machine.
    problem: why the member cannot be read, or None.
    open: a function that returns the content (at most `TARBALL_BYTES`), or raises `Rejected`.
    """

    name: str
    date: datetime | None
    problem: Rejected | None
    open: Callable[[], IO[bytes]]


def read_zip(open_archive: Callable[[], IO[bytes]], *, few: bool) -> list[Member]:
    """Return the members of a zip, in the order of its directory. Two members may have the same name.

    few: whether the zip comes from one student, and may have only a few members. Raises `Rejected` if there are too
    many members, or if the zip is damaged.
    """
    size, most = (_FEW_DIRECTORY_BYTES, _FEW_MEMBERS) if few else (_DIRECTORY_BYTES, _MEMBERS)
    try:
        with open_archive() as file, zipfile.ZipFile(_Sized(file, size)) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OverflowError):
        raise Rejected("damaged archive", f"The zip is damaged, or has an unknown format: {REMEDY}.") from None
    if len(infos) > most:
        raise Rejected("too many files", f"The zip has more than {most} members: {REMEDY}.")
    return [
        Member(name, _date(info), _problem(name, info), partial(_open, open_archive, info))
        for name, info in ((_name(info), info) for info in infos)
    ]


class _Sized:
    """A file with a limit for each read. Without it, `zipfile` would read a directory of any size at once."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self._limit = limit
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        if size > self._limit:
            raise Rejected("too many files", f"The zip has too many members: {REMEDY}.")
        return self._file.read(size)


def _name(info: zipfile.ZipInfo) -> str:
    """Return a member's name. Some programs write UTF-8 without a flag, and `zipfile` reads this as code page 437."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename


def _problem(name: str, info: zipfile.ZipInfo) -> Rejected | None:
    """Return the reason why a member must not be read, or None."""
    try:
        for part in name.rstrip("/").split("/"):
            plain_name(part)
    except Rejected as refusal:
        return refusal
    if info.flag_bits & 0x1:
        return Rejected("encrypted", f"This file in the zip is encrypted: {REMEDY}.")
    if stat.S_ISLNK(info.external_attr >> 16):
        return Rejected("link", f"This file in the zip is a link: {REMEDY}.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Rejected("unknown member", f"This file in the zip is compressed in an unusual way: {REMEDY}.")
    if info.file_size > TARBALL_BYTES or info.compress_size > TARBALL_BYTES:
        return Rejected("archive too large", f"The archive is larger than {TARBALL_BYTES // MIB} MiB: {REMEDY}.")
    if info.file_size > max(MIB, info.compress_size * _RATIO):
        return Rejected("unpacks too large", f"This file in the zip unpacks to over {_RATIO} times its size: {REMEDY}.")
    return None


def _date(info: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*info.date_time).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _open(open_archive: Callable[[], IO[bytes]], info: zipfile.ZipInfo) -> IO[bytes]:
    """Return the content of a member. Take its position and size from the zip's directory only."""
    damaged = Rejected("damaged archive", f"The zip is damaged: {AGAIN}.")
    if info.header_offset < 0:  # the zip gives a wrong position for its directory
        raise damaged
    try:
        with open_archive() as file:
            file.seek(info.header_offset)
            header = file.read(30)  # its last four bytes are the lengths of the name and of the extra field
            if len(header) != 30 or not header.startswith(b"PK\x03\x04"):
                raise damaged
            file.seek(sum(struct.unpack("<HH", header[26:30])), io.SEEK_CUR)
            data = file.read(info.compress_size)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, info.file_size + 1)
    except (zlib.error, ValueError, OverflowError):
        raise damaged from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise damaged
    return io.BytesIO(data)
