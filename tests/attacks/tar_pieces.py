"""The pieces that hostile tarballs are made of."""

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Mapping
from typing import Any

from attacks.attack import Base, members_of

Member = tuple[tarfile.TarInfo, bytes]
BLOCK = tarfile.BLOCKSIZE


def member(name: str, content: bytes = b"", **fields: Any) -> Member:
    """Return a member with any header fields."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def plain_tar(files: Mapping[str, bytes], *members: Member, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar archive of files, and of members as strange as they are after them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for info, content in (*(member(name, content) for name, content in files.items()), *members):
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def with_strange(base: Base, *members: Member, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return the right fix as a tarball, with strange members beside it: what else is wrong with it is nothing."""
    return zipped(plain_tar(members_of(base.reference), *members, form=form))


def zipped(tar: bytes) -> bytes:
    """Return it as gzip writes it, the fast way."""
    return gzip.compress(tar, 1, mtime=0)


def header(name: bytes, size: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a ustar header with these bytes as name and size, and a checksum that is right."""
    fields = name.ljust(100, b"\0")[:100] + b"0000644\0" + b"0000000\0" * 2 + size.ljust(12, b"\0")[:12]
    fields += b"00000000000\0" + b" " * 8 + kind + bytes(100) + b"ustar\x0000"
    block = fields.ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def with_block(base: Base, block: bytes) -> bytes:
    """Return the right fix with these bytes where its archive would end, and its end after them."""
    whole = plain_tar(members_of(base.reference))
    return zipped(
        whole.rstrip(b"\0").ljust(-(-len(whole.rstrip(b"\0")) // BLOCK) * BLOCK, b"\0")
        + block
        + bytes(2 * BLOCK)
    )


def pax_header(*records: bytes) -> bytes:
    """Return the blocks of a pax header with these records as they stand."""
    content = b"".join(records)
    return header(b"pax", b"%011o" % len(content), tarfile.XHDTYPE) + content.ljust(
        -(-len(content) // BLOCK) * BLOCK, b"\0"
    )


def endless(mib: int) -> bytes:
    """Return a gzip file of that many MiB of zeros which never comes to its end: a thousandth of it as a file."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packer.compress(bytes(2**20))
    packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return struct.pack("<3sB4xBB", b"\x1f\x8b\x08", 0, 0, 255) + piece * mib
