"""Attacks by the file itself: what is no gzipped tarball, or unpacks for ever, or is no file at all."""

import bz2
import gzip
import io
import lzma
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

from attacks.attack import Attack, Base, Expected, members_of
from attacks.tar_pieces import BLOCK, endless, plain_tar, zipped

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
    """A frame of one raw block (RFC 8878) with as much of the tar as a block holds."""
    content = _tar(base)[: 2**16]
    return struct.pack("<IBB", 0xFD2FB528, 0, 0x58) + struct.pack("<I", len(content) << 3 | 1)[:3] + content


def _tar_bomb(base: Base) -> bytes:
    files = {f"part{number}": bytes(20 * 2**20) for number in range(4)}
    return zipped(plain_tar({**members_of(base.reference), **files}))


def _named_gzip(base: Base) -> bytes:
    name = b"\x1b[2J../../etc/cron.d/x\0"
    return base.untouched[:3] + b"\x08" + base.untouched[4:10] + name + base.untouched[10:]


def _tar_in_tar(base: Base) -> bytes:
    return base.with_members(base.untouched, {"fix.tar.gz": base.reference}, student="tar_in_tar")


# Blocks of deflate (RFC 1951) that hold nothing: work without a byte of output to count. Stored ones; four with the
# fixed code, ten bits each; two that bring a code of their own with them.
_STORED = b"\0\0\0\xff\xff"
_FIXED = (1 << 1 | 1 << 11 | 1 << 21 | 1 << 31).to_bytes(5, "little")


def _own_code() -> bytes:
    def number(value: int, bits: int) -> str:
        return f"{value:0{bits}b}"[::-1]

    # Lengths of the code lengths in the order of the standard: 18 has one bit, 0 and 1 have two.
    order = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1)
    lengths = "".join(number({18: 1, 0: 2, 1: 2}.get(symbol, 0), 3) for symbol in order)
    # 256 symbols without a code, the end of the block with one of one bit, no distance.
    symbols = "0" + number(138 - 11, 7) + "0" + number(118 - 11, 7) + "11" + "10"
    block = "0" + number(2, 2) + number(0, 5) + number(0, 5) + number(14, 4) + lengths + symbols + "0"
    return int((block * 2)[::-1], 2).to_bytes(23, "little")


def _blocks(piece: bytes, mib: int) -> Callable[[Base], bytes]:
    return lambda _: _GZIP + piece * (mib * 2**20 // len(piece))


def _hole(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.truncate(2**40)


def _link(path: Path, data: bytes) -> None:
    path.symlink_to(os.fsdecode(data))


def _refused(
    id: str,
    says: str,
    because: str,
    build: Callable[[Base], bytes],
    place: Callable[[Path, bytes], object] = Path.write_bytes,
) -> Attack:
    return Attack(id, "archive", says, Expected(("rejected",), because), build, place=place)


ATTACKS = (
    _refused("zip", "a zip file under a tarball's name", "no gzip file", _zip),
    _refused("xz", "an xz file", "no gzip file", lambda base: lzma.compress(_tar(base)[: 2**18], preset=0)),
    _refused("bzip2", "a bzip2 file", "no gzip file", lambda base: bz2.compress(_tar(base)[: 2**18], 1)),
    _refused("zstandard", "a zstandard file", "no gzip file", _zstandard),
    _refused("plain_tar", "a tar archive that nobody compressed", "no gzip file", _tar),
    _refused("empty_file", "no bytes at all", "This is empty", lambda _: b""),
    _refused("cut_short", "half a tarball", "ends too early",
        lambda base: base.reference[: len(base.reference) // 2]),
    _refused("cut_inside", "a tar cut short in a whole gzip file", "ends",
        lambda base: zipped(_tar(base)[: 30 * BLOCK])),
    _refused("wrong_sum", "a gzip file with a wrong checksum", "damaged",
        lambda base: base.reference[:-8] + bytes(8)),
    _refused("noise", "a gzip header before noise", "damaged", lambda _: _GZIP + b"\xff" * 4096),
    _refused("gzip_in_gzip", "a tarball gzipped twice", "no tar archive", lambda base: zipped(base.reference)),
    _refused("behind", "a script behind the end", "follows the end",
        lambda base: base.reference + b"#!/bin/sh\n"),
    _refused("two_in_one", "two tarballs, as gzip allows", "follows",
        lambda base: base.untouched + base.reference),
    _refused("bomb", "1 GiB of zeros in 1 MiB", "holds more than", lambda _: endless(1024)),
    _refused("grows_for_ever", "16 GiB of zeros without an end in 16 MiB", "holds more than",
        lambda _: endless(2**14)),
    _refused("many_bombs", "200 gzip files of 16 MiB of zeros", "follows",
        lambda _: gzip.compress(bytes(2**24), 1, mtime=0) * 200),
    _refused("tar_bomb", "a tar archive of 80 MiB of zeros", "holds more than", _tar_bomb),
    _refused("stored_nothing", "60 MiB of stored blocks of nothing", "larger than its content",
        _blocks(_STORED, 60)),
    _refused("fixed_nothing", "60 MiB of coded blocks of nothing", "larger than its content", _blocks(_FIXED,
        60)),
    _refused("coded_nothing", "60 MiB of codes for nothing", "larger than its content", _blocks(_own_code(),
        60)),
    _refused("too_large", "1 TiB, nearly all of it a hole", "larger than", lambda base: base.reference, _hole),
    _refused("link_to_canary", "a link to the canary", "a link", lambda base: os.fsencode(base.canary), _link),
    _refused("link_to_endless", "a link to a device without an end", "a link", lambda _: b"/dev/zero", _link),
    _refused("folder", "a folder under a tarball's name", "a folder", lambda _: b"", lambda path,
        _: path.mkdir()),
    _refused("pipe", "a pipe that nobody writes to", "no file", lambda _: b"", lambda path, _: os.mkfifo(path)),
    Attack("named_gzip", "archive", "gzip's name for its content is a path with escapes", Expected(("graded",
        )), _named_gzip),
    Attack("tar_in_tar", "archive", "the right fix as a tarball inside the broken one", Expected(("graded",),
        "were ignored"), _tar_in_tar),
)  # fmt: skip
