"""Reads the members of a tarball in memory: regular files under plain names, and nothing else at all.

The headers are read one by one with `tarfile.TarInfo.frombuf`, not with `tarfile.open`: that one stops silently
at a header that it cannot read, follows extension headers recursively, and needs seconds for some of them.
"""

import tarfile
from collections.abc import Iterator

from grader.intake.names import check_distinct, plain_name, printable
from grader.intake.rejected import Rejected

__all__ = ["Rejected", "read_members"]

# A submission has 20 members; the headers of folders and of long names count too.
HEADERS = 200
MEMBER_BYTES = 32 * 1024 * 1024
# What a longer name, or the times of some tar programs, take in a header of their own.
EXTENSION_BYTES = 4096
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
_REMEDY = "hand in the .tar.gz file that make submit wrote"


def read_members(tar: bytes, members: dict[str, bytes]) -> None:
    """Put the files of a tar archive into `members`, by name.

    Raises `Rejected` for whatever a submission does not have; what was read until then stays in `members`.
    """
    names: list[str] = []
    longer = ""
    for headers, (position, info) in enumerate(_headers(tar), start=1):
        if headers > HEADERS:
            raise Rejected("too many files", f"The archive has more than {HEADERS} members: {_REMEDY}.")
        content = tar[position : position + info.size]
        if info.type in _EXTENSIONS:
            longer = _longer_name(info, content) or longer
            continue
        name = plain_name(longer or info.name)
        longer = ""
        if info.type == tarfile.DIRTYPE or (info.type in _FILES and info.name.endswith("/")):
            continue
        code, what = _REFUSED.get(info.type, ("unknown member", "of no kind that is known"))
        if info.type not in _FILES:
            raise Rejected(code, f"{printable(name)} in the archive is {what}: {_REMEDY}.")
        if info.size > MEMBER_BYTES:
            limit = MEMBER_BYTES // 2**20
            raise Rejected("file too large", f"{printable(name)} in the archive is larger than {limit} MiB.")
        names.append(name)
        members[name] = content
    check_distinct(names)


def _headers(tar: bytes) -> Iterator[tuple[int, tarfile.TarInfo]]:
    """Yield each header with the position of its content. Raises `Rejected` where header and bytes disagree."""
    position = 0
    while any(block := tar[position : position + _BLOCK]) and len(block) == _BLOCK:
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except UnicodeDecodeError:
            raise Rejected("unprintable name", f"A name in the archive is not UTF-8: {_REMEDY}.") from None
        except (tarfile.HeaderError, ValueError):
            what = "This holds no tar archive" if position == 0 else "The archive has a damaged header"
            raise Rejected("damaged archive", f"{what}: {_REMEDY}.") from None
        start = position + _BLOCK
        if info.size < 0:
            raise Rejected("damaged archive", f"The archive has a file of a negative size: {_REMEDY}.")
        position = start + -(-info.size // _BLOCK) * _BLOCK
        if position > len(tar):
            raise Rejected("truncated archive", f"The archive ends within {printable(info.name)}: {_REMEDY}.")
        yield start, info
    # The end is marked by two blocks of zeros; programs add more of them.
    if len(tar) - position < 2 * _BLOCK:
        raise Rejected("truncated archive", f"The archive ends too early: {_REMEDY}, again.")
    if any(tar[position:]):
        raise Rejected("trailing data", f"Something follows the end of the archive: {_REMEDY}, as it is.")


def _longer_name(info: tarfile.TarInfo, content: bytes) -> str:
    """Return the name that an extension header gives the next member, or "" where it gives none."""
    if info.size > EXTENSION_BYTES:
        raise Rejected("name too long", f"A header in the archive is longer than {EXTENSION_BYTES} bytes.")
    try:
        if info.type == tarfile.GNUTYPE_LONGNAME:
            return content.removesuffix(b"\0").decode("utf-8")
        records = dict(_pax_records(content))
        name = records.get(b"path", b"").decode("utf-8")
    except UnicodeDecodeError:
        raise Rejected("unprintable name", f"A name in the archive is not UTF-8: {_REMEDY}.") from None
    except ValueError:
        raise Rejected("damaged archive", f"The archive has a damaged header: {_REMEDY}.") from None
    if any(key.startswith(b"GNU.sparse") for key in records):
        raise Rejected("sparse file", f"The archive has a sparse file: {_REMEDY}.")
    if b"size" in records or b"linkpath" in records or (name and info.type == tarfile.XGLTYPE):
        raise Rejected("lying header", f"A header in the archive contradicts the next: {_REMEDY}.")
    return name


def _pax_records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records `length key=value\\n` of a pax header. Raises `ValueError` where they are no such."""
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
