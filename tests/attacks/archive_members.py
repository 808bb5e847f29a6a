"""Attacks with the members of the tar archive: their names, their types, and false headers."""

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attacks.attack import Attack, Base, Expected, members_of

BLOCK = tarfile.BLOCKSIZE
Build = Callable[[Base], bytes]
Member = tuple[tarfile.TarInfo, bytes]
_LOG = "runs/fixed/metrics.log"


def refused(table: Mapping[str, tuple[str, str, Build]]) -> Iterator[Attack]:
    """Yield attacks that must be rejected. table: by id, the description, the expected reason, and the bytes."""
    for id, (says, because, build) in table.items():
        yield Attack(id, "archive", says, Expected(("rejected",), because), build)


def member(name: str, content: bytes = b"", **fields: Any) -> Member:
    """Return a tar member with any header fields."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def plain_tar(files: Mapping[str, bytes], *members: Member, form: int = tarfile.PAX_FORMAT) -> bytes:
    """Return a tar archive of files, followed by unusual members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, errors="surrogateescape") as tar:
        for info, content in (*(member(name, content) for name, content in files.items()), *members):
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zipped(tar: bytes) -> bytes:
    """Return the tar archive as a gzip file, with fast compression."""
    return gzip.compress(tar, 1, mtime=0)


def _strange(*members: Member, form: int = tarfile.PAX_FORMAT) -> Build:
    """The correct fix with unusual members in addition."""
    return lambda base: zipped(plain_tar(members_of(base.reference), *members, form=form))


def _named(name: str, form: int = tarfile.PAX_FORMAT) -> Build:
    return _strange(member(name, b"x"), form=form)


def _kind(kind: bytes, **fields: Any) -> Build:
    return _strange(member("x", type=kind, **fields))


def _pax(**headers: str) -> Build:
    return _strange(member("x", b"x", pax_headers={name.replace("_", "."): text for name, text in headers.items()}))


def _whole_blocks(content: bytes) -> bytes:
    return content.ljust(-(-len(content) // BLOCK) * BLOCK, b"\0")


def _header(name: bytes, size: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a ustar header with this name and size, and with a correct checksum."""
    fields = name.ljust(100, b"\0")[:100] + b"0000644\0" + b"0000000\0" * 2 + size.ljust(12, b"\0")[:12]
    fields += b"00000000000\0" + b" " * 8 + kind + bytes(100) + b"ustar\x0000"
    block = fields.ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def _pax_header(record: bytes) -> bytes:
    """Return the blocks of a pax header with exactly this record."""
    return _header(b"pax", b"%011o" % len(record), tarfile.XHDTYPE) + _whole_blocks(record)


def _block(block: bytes) -> Build:
    """The correct fix with these bytes before the end of its archive."""

    def build(base: Base) -> bytes:
        whole = plain_tar(members_of(base.reference)).rstrip(b"\0")
        return zipped(_whole_blocks(whole) + block + bytes(2 * BLOCK))

    return build


def _record(record: bytes) -> Build:
    """The correct fix with this pax record before a normal file."""
    return _block(_pax_header(record) + _header(b"strange", b"%011o" % 4) + _whole_blocks(b"text"))


def _sized(size: bytes) -> Build:
    return _block(_header(b"x", size))


def _instead_of_the_log(kind: bytes) -> Build:
    """Replace the log with a link to the canary, which is outside the archive."""

    def build(base: Base) -> bytes:
        files = {name: content for name, content in members_of(base.reference).items() if name != _LOG}
        return zipped(plain_tar(files, member(_LOG, type=kind, linkname=str(base.canary))))

    return build


def _hidden_behind(base: Base) -> bytes:
    return zipped(plain_tar(members_of(base.untouched)) + plain_tar(members_of(base.reference)))


def _without_end(base: Base) -> bytes:
    return zipped(plain_tar(members_of(base.reference)).rstrip(b"\0") + bytes(BLOCK - 1))


def _wrong_checksum(base: Base) -> bytes:
    return zipped(b"X" + plain_tar(members_of(base.reference))[1:])


def _owner(base: Base) -> bytes:
    """Set-user-id files of root, with a far future time and control characters in the owner: all have no effect."""
    fields = {"mode": 0o7777, "uid": 0, "mtime": 2**40, "uname": "\x1b[2Jroot", "gname": "root"}
    files = [member(name, content, **fields) for name, content in members_of(base.untouched).items()]
    return zipped(plain_tar({}, *files))


ATTACKS = (
    *refused({
        "traversal": ("a file in the folder of cron", "leads out", _named("../../etc/cron.d/x")),
        "traversal_inside": ("the same behind a good folder", "leads out", _named("runs/../../x")),
        "absolute": ("a file at the root of the disk", "plain relative", _named("/etc/cron.d/x")),
        "windows_drive": ("a file on a drive", "plain relative", _named("C:/x")),
        "backslashes": ("a path as on Windows", "plain relative", _named("..\\..\\x")),
        "symbolic_link": ("a log that is a link to the canary", "symbolic link", _instead_of_the_log(tarfile.SYMTYPE)),
        "hard_link": ("a log that is a hard link to the canary", "hard link", _instead_of_the_log(tarfile.LNKTYPE)),
        "gnu_link": ("a long link of GNU tar's", "a link",
            _strange(member("x", b"/etc/passwd\0", type=tarfile.GNUTYPE_LONGLINK))),
        "character_device": ("the device of all memory", "a device", _kind(tarfile.CHRTYPE, devmajor=1, devminor=5)),
        "block_device": ("the first disk", "a device", _kind(tarfile.BLKTYPE, devmajor=8)),
        "fifo": ("a pipe in place of a report", "a pipe", _kind(tarfile.FIFOTYPE)),
        "contiguous": ("a kind of file that nobody has", "contiguous", _kind(tarfile.CONTTYPE)),
        "unknown_kind": ("a type of member that nobody knows", "unknown type", _kind(b"Z")),
        "gnu_sparse": ("a sparse file of GNU tar's, 1 TiB large", "sparse",
            _block(_header(b"x", b"%011o" % 0, tarfile.GNUTYPE_SPARSE))),
        "pax_sparse": ("a sparse file in a pax header, 1 TiB large", "sparse",
            _pax(GNU_sparse_major="1", GNU_sparse_realsize=str(2**40))),
        "duplicate": ("a second report as ./report.md", "twice", _named("./report.md")),
        "many_files": ("10,000 files", "more than 200", _strange(*(member(f"file{n}") for n in range(10_000)))),
        "many_folders": ("10,000 folders", "more than 200",
            _strange(*(member(f"folder{n}/", type=tarfile.DIRTYPE) for n in range(10_000)))),
        "many_headers": ("5,000 pax records in a row", "more than 200", _block(_pax_header(b"6 a=b\n") * 5000)),
        "large_member": ("a member of 40 MiB", "larger than", _strange(member("x", bytes(40 * 2**20)))),
        "larger_than_it_is": ("a member that says it has 8 GiB", "ends inside", _sized(b"77777777777")),
        "as_large_as_can_be": ("a member of 2 ** 88 bytes", "ends inside", _sized(b"\x80" + b"\xff" * 11)),
        "negative": ("a member of minus 512 bytes, so that it comes again and again", "negative",
            _sized(b"\xff" * 10 + b"\xfe\0")),
        "no_number": ("a size that is no number", "damaged header", _sized(b"many")),
        "wrong_checksum": ("a header that was changed", "not a tar archive", _wrong_checksum),
        "pax_size": ("a pax header with another size", "contradicts", _pax(size="99")),
        "pax_path": ("a pax header that leads out", "leads out", _pax(path="../x")),
        "pax_link": ("a pax header with a link", "contradicts", _pax(linkpath="/etc")),
        "pax_global": ("a name for all that follows", "contradicts", _strange(
            member("x", b"18 path=evil/path\n", type=tarfile.XGLTYPE), member("strange", b"x"))),
        "pax_large": ("a pax header of 10 MB", "longer than 4096", _pax(comment="x" * 10_000_000)),
        "pax_long_number": ("a record of 10 ** 20 bytes", "damaged header", _record(b"9" * 20 + b" a=b\n")),
        "pax_no_progress": ("a record of no bytes", "damaged header", _record(b"0 a=b\n")),
        "long_name": ("a name of 4,000 characters", "longer than 255", _named("x" * 4000, tarfile.GNU_FORMAT)),
        "very_long_name": ("a name of 1 MB", "longer than 4096", _named("x" * 10**6, tarfile.GNU_FORMAT)),
        "newline": ("a name with a line feed", "invisible characters", _named("a\nb")),
        "escapes": ("a name that clears the screen", "invisible characters", _named("\x1b[2J\x1b]0;x\x07")),
        "right_to_left": ("a name that reads backwards", "invisible characters", _named("\u202egpj.exe")),
        "nul": ("a name with a NUL, in a pax header", "invisible characters", _record(b"20 path=report\0.txt\n")),
        "not_utf8": ("a name that is no text", "not UTF-8", _block(_header(b"\xff\xfe", b"%011o" % 0))),
        "second_archive": ("the right fix behind the end of the archive", "after the end", _hidden_behind),
        "no_end": ("an archive without its end", "ends too early", _without_end),
    }),
    *(Attack(id, "archive", says, Expected(("graded",), "grader ignored", "reference"), _named(name))
        for id, says, name in (
        ("case", "a second report as REPORT.md", "REPORT.md"),
        ("full_width", "a second report in full-width letters", "\uff52eport.md"),
        ("below_a_file", "a file below the report", "report.md/x"),
    )),
    Attack("owner", "archive", "files of root's that run as root, from the future", Expected(("graded",)), _owner),
)  # fmt: skip
