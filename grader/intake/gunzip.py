"""Reads a tarball from disk and decompresses it, never holding more than a stated number of bytes."""

import errno
import os
import stat
import zlib
from pathlib import Path

from grader.intake.rejected import Rejected

MIB = 1024 * 1024
# The harness compresses nothing, so that both limits speak of the same bytes. A submission of an MLP is 2 MiB, of
# the convolutional network less; ten times MNIST's longest log still fits.
TARBALL_BYTES = 64 * MIB
UNPACKED_BYTES = 64 * MIB
# So much is read and decompressed at once: what lies beyond the limits is never made.
_CHUNK = MIB // 4
# No program writes so much more than it packs (names of files in the header count, too). Blocks that hold nothing
# would take the decompressor 9 s for a tarball at the limit, and never give a byte to count.
_OVERHEAD_BYTES = MIB
_GZIP = b"\x1f\x8b\x08"
_OTHERS = {
    b"PK": "a zip file",
    b"\xfd7zXZ": "an xz file",
    b"BZh": "a bzip2 file",
    b"7z\xbc\xaf": "a 7-Zip file",
    b"\x28\xb5\x2f\xfd": "a zstandard file",
    b"Rar!": "a RAR file",
}
_REMEDY = "hand in the .tar.gz file that make submit wrote"


def read_tarball(path: Path) -> bytes:
    """Return the bytes of a regular file.

    Raises `Rejected` for a link, a folder, a pipe or a device, and above `TARBALL_BYTES`; `OSError` where the
    file cannot be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _no_file()
    try:
        # Between the two looks it may have become something that waits when it is opened, or a link.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise _no_file() from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _no_file()
        data = file.read(TARBALL_BYTES + 1)
    if len(data) > TARBALL_BYTES:
        limit = TARBALL_BYTES // MIB
        raise Rejected("archive too large", f"The archive is larger than {limit} MiB: {_REMEDY}.")
    return data


def _no_file() -> Rejected:
    return Rejected("not a file", f"This is a link, a folder or a device and no file: {_REMEDY}.")


def gunzip(data: bytes) -> bytes:
    """Return what a gzip file holds. Raises `Rejected` for anything that is not one whole gzip file."""
    if not data.startswith(_GZIP):
        what = next((name for magic, name in _OTHERS.items() if data.startswith(magic)), "no gzip file")
        what = "an uncompressed tar file" if data[257:262] == b"ustar" else what
        raise Rejected("not a tarball", f"This is {'empty' if not data else what}: {_REMEDY}.")
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    pieces, size, position, waiting = [], 0, 0, b""
    while not stream.eof:
        if not waiting:
            waiting = data[position : position + _CHUNK]
            position += len(waiting)
        try:
            piece = stream.decompress(waiting, _CHUNK)
        except zlib.error:
            raise Rejected("damaged archive", f"The archive is damaged: {_REMEDY}, again.") from None
        waiting = stream.unconsumed_tail
        size += len(piece)
        if size > UNPACKED_BYTES:
            limit = UNPACKED_BYTES // MIB
            raise Rejected("unpacks too large", f"The archive holds more than {limit} MiB: {_REMEDY}.")
        if position - len(waiting) > size + _OVERHEAD_BYTES:
            raise Rejected("damaged archive", f"The archive is larger than what is in it: {_REMEDY}, again.")
        pieces.append(piece)
        if not piece and not waiting and position == len(data) and not stream.eof:
            raise Rejected("truncated archive", f"The archive ends too early: {_REMEDY}, again.")
    if stream.unused_data or position < len(data):
        raise Rejected("trailing data", f"Something follows the end of the archive: {_REMEDY}, as it is.")
    return b"".join(pieces)
