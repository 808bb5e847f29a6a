"""Attacks with the file itself: it is not a gzipped tarball, it unpacks without end, or it is not a file."""

import bz2
import gzip
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from attacks.archive_members import BLOCK, plain_tar, refused, zipped
from attacks.attack import Attack, Base, Expected, members_of, with_members

_GZIP = b"\x1f\x8b\x08" + bytes(7)


def _tar(base: Base) -> bytes:
    return plain_tar(members_of(base.reference))


def _zip(base: Base) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members_of(base.reference).items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _zstandard(base: Base) -> bytes:
    """Return a zstandard frame (RFC 8878) with one raw block, which contains as much of the tar as fits."""
    content = _tar(base)[: 2**16]
    return struct.pack("<IBB", 0xFD2FB528, 0, 0x58) + struct.pack("<I", len(content) << 3 | 1)[:3] + content


def _endless(mib: int) -> bytes:
    """Return a gzip file of this many MiB of zeros, without an end. It is about a thousandth of that size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packer.compress(bytes(2**20))
    packer.flush(zlib.Z_FULL_FLUSH)
    return _GZIP + (packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)) * mib


def _tar_bomb(base: Base) -> bytes:
    files = {f"part{number}": bytes(20 * 2**20) for number in range(4)}
    return zipped(plain_tar({**members_of(base.reference), **files}))


def _named_gzip(base: Base) -> bytes:
    name = b"\x1b[2J../../etc/cron.d/x\0"
    return base.untouched[:3] + b"\x08" + base.untouched[4:10] + name + base.untouched[10:]


def _blocks_of_nothing(base: Base) -> bytes:
    """Return 60 MiB of empty deflate blocks (RFC 1951). They take time to unpack, but give no output to limit.

    Each step writes four blocks with the fixed code, of ten bits each.
    """
    piece = (1 << 1 | 1 << 11 | 1 << 21 | 1 << 31).to_bytes(5, "little")
    return _GZIP + piece * (60 * 2**20 // len(piece))


def _hole(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.truncate(2**40)


def _placed(
    id: str, says: str, because: str, place: Callable[[Path, bytes], object], data: Callable[[Base], bytes]
) -> Attack:
    return Attack(id, "archive", says, Expected(("rejected",), because), data, place=place)


def _link(path: Path, data: bytes) -> None:
    path.symlink_to(os.fsdecode(data))


ATTACKS = (
    *refused({
        "zip": ("a zip file under a tarball's name", "not a gzip file", _zip),
        "xz": ("an xz file", "not a gzip file", lambda base: lzma.compress(_tar(base)[: 2**18], preset=0)),
        "bzip2": ("a bzip2 file", "not a gzip file", lambda base: bz2.compress(_tar(base)[: 2**18], 1)),
        "zstandard": ("a zstandard file", "not a gzip file", _zstandard),
        "plain_tar": ("a tar archive that nobody compressed", "not a gzip file", _tar),
        "empty_file": ("no bytes at all", "The file is empty", lambda _: b""),
        "cut_short": ("half a tarball", "ends too early", lambda base: base.reference[: len(base.reference) // 2]),
        "cut_inside": ("a tar cut short in a whole gzip file", "ends", lambda base: zipped(_tar(base)[: 30 * BLOCK])),
        "wrong_sum": ("a gzip file with a wrong checksum", "damaged", lambda base: base.reference[:-8] + bytes(8)),
        "noise": ("a gzip header before noise", "damaged", lambda _: _GZIP + b"\xff" * 4096),
        "gzip_in_gzip": ("a tarball gzipped twice", "not a tar archive", lambda base: zipped(base.reference)),
        "behind": ("a script behind the end", "after the end", lambda base: base.reference + b"#!/bin/sh\n"),
        "two_in_one": ("two tarballs, as gzip allows", "data after the end",
            lambda base: base.untouched + base.reference),
        "bomb": ("1 GiB of zeros in 1 MiB", "contains more than", lambda _: _endless(1024)),
        "many_bombs": ("200 gzip files of 16 MiB of zeros", "data after the end",
            lambda _: gzip.compress(bytes(2**24), 1, mtime=0) * 200),
        "tar_bomb": ("a tar archive of 80 MiB of zeros", "contains more than", _tar_bomb),
        "nothing_packed": ("60 MiB of coded blocks of nothing", "larger than its content", _blocks_of_nothing),
    }),
    _placed("too_large", "1 TiB, nearly all of it a hole", "larger than", _hole, lambda base: base.reference),
    _placed("link_to_canary", "a link to the canary", "a link", _link, lambda base: os.fsencode(base.canary)),
    _placed("link_to_endless", "a link to a device without an end", "a link", _link, lambda _: b"/dev/zero"),
    _placed("folder", "a folder under a tarball's name", "a folder", lambda path, _: path.mkdir(), lambda _: b""),
    _placed("pipe", "a pipe that nobody writes to", "not a file", lambda path, _: os.mkfifo(path), lambda _: b""),
    Attack("named_gzip", "archive", "gzip's name for its content is a path with escapes", Expected(("graded",)),
        _named_gzip),
    Attack("tar_in_tar", "archive", "the right fix as a tarball inside the broken one",
        Expected(("graded",), "grader ignored"),
        lambda base: with_members(base.untouched, {"fix.tar.gz": base.reference}, student="tar_in_tar")),
)  # fmt: skip
