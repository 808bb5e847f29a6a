"""zlib streams and gzip files of stored blocks: bytes that do not depend on the zlib of a Python.

A compressor may answer the same input with other bytes in its next release, and distributions already ship
zlib-ng in zlib's place. A stored block leaves no choice: equal content has equal bytes on every machine.
The price is that nothing gets smaller.
"""

import struct
import zlib
from collections.abc import Iterator

BLOCK_SIZE = 65535  # the largest a stored block can be: its length has 16 bits (RFC 1951, section 3.2.4)

# RFC 1950: deflate with a 32 KiB window, fastest level, and the check bits that make it a multiple of 31.
_ZLIB_HEADER = b"\x78\x01"
# RFC 1952: magic, method deflate, no flags (so no file name), no time, no extra flags, unknown system.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def stored_zlib(data: bytes) -> bytes:
    """Return `data` as a zlib stream (RFC 1950) of stored blocks."""
    return b"".join((_ZLIB_HEADER, *_stored_blocks(data), struct.pack(">I", zlib.adler32(data))))


def stored_gzip(data: bytes) -> bytes:
    """Return `data` as a gzip file (RFC 1952) of stored blocks: time 0, no name, system 255 (unknown)."""
    trailer = struct.pack("<II", zlib.crc32(data), len(data) % 2**32)
    return b"".join((_GZIP_HEADER, *_stored_blocks(data), trailer))


def _stored_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the deflate stream in pieces; an empty input is one empty block: one must be the last."""
    view = memoryview(data)
    last_start = max(len(data) - 1, 0) // BLOCK_SIZE * BLOCK_SIZE
    for start in range(0, last_start + 1, BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        yield struct.pack("<BHH", start == last_start, len(block), len(block) ^ 0xFFFF)
        yield bytes(block)
