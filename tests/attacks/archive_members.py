"""Attacks by what is in the tar archive: names, kinds of members, and headers that lie."""

import tarfile
from collections.abc import Callable

from attacks.attack import Attack, Base, Expected, members_of
from attacks.tar_pieces import (
    BLOCK,
    Member,
    header,
    member,
    pax_header,
    plain_tar,
    with_block,
    with_strange,
    zipped,
)

Build = Callable[[Base], bytes]
_LOG = "runs/fixed/metrics.log"


def _refused(id: str, says: str, because: str, build: Build) -> Attack:
    return Attack(id, "archive", says, Expected(("rejected",), because), build)


def _strange(*members: Member, form: int = tarfile.PAX_FORMAT) -> Build:
    return lambda base: with_strange(base, *members, form=form)


def _block(*blocks: bytes) -> Build:
    return lambda base: with_block(base, b"".join(blocks))


def _instead_of_the_log(kind: bytes) -> Build:
    """Let the log be a link to the canary, which is in no folder of the archive."""

    def build(base: Base) -> bytes:
        files = {name: content for name, content in members_of(base.reference).items() if name != _LOG}
        return zipped(plain_tar(files, member(_LOG, type=kind, linkname=str(base.canary))))

    return build


def _hidden_behind(base: Base) -> bytes:
    """A whole archive of another student's behind the end of the first."""
    return zipped(plain_tar(members_of(base.untouched)) + plain_tar(members_of(base.reference)))


def _without_end(base: Base) -> bytes:
    return zipped(plain_tar(members_of(base.reference)).rstrip(b"\0") + bytes(BLOCK - 1))


def _wrong_checksum(base: Base) -> bytes:
    tar = bytearray(plain_tar(members_of(base.reference)))
    tar[0:1] = b"X"
    return zipped(bytes(tar))


def _owner(base: Base) -> bytes:
    """Set-user-id root, a time in the far future, an owner with escapes in the name: of no meaning in memory."""
    fields = {"mode": 0o7777, "uid": 0, "mtime": 2**40, "uname": "\x1b[2Jroot", "gname": "root"}
    files = [member(name, content, **fields) for name, content in members_of(base.untouched).items()]
    return zipped(plain_tar({}, *files))


def _many(count: int, kind: bytes) -> Build:
    end = "/" if kind == tarfile.DIRTYPE else ""
    return _strange(*(member(f"file{number}{end}", type=kind) for number in range(count)))


_SIZE = b"%011o" % 4
_PLAIN = (header(b"strange", _SIZE), b"text".ljust(BLOCK, b"\0"))

ATTACKS = (
    _refused("traversal", "a file in the folder of cron", "leads out", _strange(member("../../etc/cron.d/x",
        b"x"))),
    _refused("traversal_inside", "the same behind a good folder", "leads out", _strange(member("runs/../../x",
        b"x"))),
    _refused("absolute", "a file at the root of the disk", "plain relative", _strange(member("/etc/cron.d/x",
        b"x"))),
    _refused("windows_drive", "a file on a drive", "plain relative", _strange(member("C:/x", b"x"))),
    _refused("backslashes", "a path as on Windows", "plain relative", _strange(member("..\\..\\x", b"x"))),
    _refused("symbolic_link", "a log that is a link to the canary", "symbolic link",
        _instead_of_the_log(tarfile.SYMTYPE)),
    _refused("hard_link", "a log that is a hard link to the canary", "hard link",
        _instead_of_the_log(tarfile.LNKTYPE)),
    _refused("gnu_link", "a long link of GNU tar's", "a link", _strange(member("x", b"/etc/passwd\0",
        type=tarfile.GNUTYPE_LONGLINK))),
    _refused("character_device", "the device of all memory", "a device", _strange(member("zero",
        type=tarfile.CHRTYPE, devmajor=1, devminor=5))),
    _refused("block_device", "the first disk", "a device", _strange(member("disk", type=tarfile.BLKTYPE,
        devmajor=8))),
    _refused("fifo", "a pipe in place of a report", "a pipe", _strange(member("pipe", type=tarfile.FIFOTYPE))),
    _refused("contiguous", "a kind of file that nobody has", "contiguous", _strange(member("x",
        type=tarfile.CONTTYPE))),
    _refused("unknown_kind", "a kind of member that nobody knows", "unknown kind", _strange(member("x", type=b"Z"))),
    _refused("gnu_sparse", "a sparse file of GNU tar's, 1 TiB large", "sparse", _block(header(b"x",
        b"%011o" % 0, tarfile.GNUTYPE_SPARSE))),
    _refused("pax_sparse", "a sparse file in a pax header, 1 TiB large", "sparse", _strange(member("x",
        pax_headers={"GNU.sparse.major": "1", "GNU.sparse.realsize": str(2**40)}))),
    _refused("duplicate", "a second report", "twice", _strange(member("report.md", b"another"))),
    _refused("duplicate_dot", "a second report as ./report.md", "twice", _strange(member("./report.md",
        b"another"))),
    _refused("case", "a second report as REPORT.md", "one file on some", _strange(member("REPORT.md", b"x"))),
    _refused("accents", "one name, composed and not", "one file on some", _strange(member("\u00e9", b"x"),
        member("e\u0301", b"x"))),
    _refused("full_width", "a second report in full-width letters", "one file on some",
        _strange(member("\uff52eport.md", b"x"))),
    _refused("below_a_file", "a file below the report", "below it", _strange(member("report.md/x", b"x"))),
    _refused("many_files", "10,000 files", "more than 200", _many(10_000, tarfile.REGTYPE)),
    _refused("many_folders", "10,000 folders", "more than 200", _many(10_000, tarfile.DIRTYPE)),
    _refused("many_headers", "5,000 pax headers in a row", "more than 200",
        _block(pax_header(b"6 a=b\n") * 5000)),
    _refused("large_member", "a member of 40 MiB", "larger than", _strange(member("x", bytes(40 * 2**20)))),
    _refused("larger_than_it_is", "a member that says it has 8 GiB", "ends within", _block(header(b"x",
        b"77777777777"))),
    _refused("as_large_as_can_be", "a member of 2 ** 88 bytes", "ends within", _block(header(b"x",
        b"\x80" + b"\xff" * 11))),
    _refused("negative", "a member of minus 512 bytes, so that it comes again and again", "negative",
        _block(header(b"x", b"\xff" * 10 + b"\xfe\0"))),
    _refused("no_number", "a size that is no number", "damaged header", _block(header(b"x", b"many"))),
    _refused("wrong_checksum", "a header that was changed", "no tar archive", _wrong_checksum),
    _refused("pax_size", "a pax header with another size", "contradicts", _strange(member("x", b"x",
        pax_headers={"size": "99"}))),
    _refused("pax_path", "a pax header that leads out", "leads out", _strange(member("x", b"x",
        pax_headers={"path": "../x"}))),
    _refused("pax_link", "a pax header with a link", "contradicts", _strange(member("x", b"x",
        pax_headers={"linkpath": "/etc"}))),
    _refused("pax_global", "a name for all that follows", "contradicts", _strange(member("x",
        b"18 path=evil/path\n", type=tarfile.XGLTYPE), member("strange", b"x"))),
    _refused("pax_large", "a pax header of 10 MB", "longer than 4096", _strange(member("x", b"x",
        pax_headers={"comment": "x" * 10_000_000}))),
    _refused("pax_long_number", "a record of 10 ** 20 bytes", "damaged header",
        _block(pax_header(b"99999999999999999999 a=b\n"), *_PLAIN)),
    _refused("pax_negative", "a record of minus 6 bytes", "damaged header", _block(pax_header(b"-6 a=b\n"),
        *_PLAIN)),
    _refused("pax_no_progress", "a record of no bytes", "damaged header", _block(pax_header(b"0 a=b\n"),
        *_PLAIN)),
    _refused("long_name", "a name of 4,000 characters", "longer than 255", _strange(member("x" * 4000, b"x"),
        form=tarfile.GNU_FORMAT)),
    _refused("very_long_name", "a name of 1 MB", "longer than 4096", _strange(member("x" * 10**6, b"x"),
        form=tarfile.GNU_FORMAT)),
    _refused("newline", "a name with a line feed", "cannot be seen", _strange(member("a\nb", b"x"))),
    _refused("escapes", "a name that clears the screen", "cannot be seen",
        _strange(member("\x1b[2J\x1b]0;x\x07", b"x"))),
    _refused("right_to_left", "a name that reads backwards", "cannot be seen", _strange(member("\u202egpj.exe",
        b"x"))),
    _refused("nul", "a name with a NUL, in a pax header", "cannot be seen",
        _block(pax_header(b"20 path=report\0.txt\n"), *_PLAIN)),
    _refused("not_utf8", "a name that is no text", "not UTF-8", _block(header(b"\xff\xfe", _SIZE), _PLAIN[1])),
    _refused("second_archive", "the right fix behind the end of the archive", "follows the end",
        _hidden_behind),
    _refused("no_end", "an archive without its end", "ends too early", _without_end),
    Attack("owner", "archive", "files of root's that run as root, from the future", Expected(("graded",)),
        _owner),
)  # fmt: skip
