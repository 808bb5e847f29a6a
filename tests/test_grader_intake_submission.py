import gzip
import hashlib
import json
import os
import tarfile
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intake_archives import (
    COMMAND,
    COMMANDS,
    contents,
    manifest,
    member,
    packed,
    taken,
    tar_of,
    whole,
    with_members,
    written,
)
from run_files import make_workspace

from grader.intake import archive as archive_module
from grader.intake.archive import EXTENSION_BYTES, HEADERS
from grader.intake.names import Rejected
from grader.intake.submission import Submission, read_settings, read_submission
from harness.run.settings import RunSettings
from harness.submission.archive import FILES, build_submission, submit

WHOLE = with_members()


def refused(tmp_path: Path, data: bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read_submission(written(tmp_path, data))
    assert caught.value.message.endswith(".")
    assert caught.value.message.isprintable()
    assert str(caught.value) == caught.value.message
    return caught.value


def test_a_whole_submission_is_taken(tmp_path: Path) -> None:
    data = packed(whole())
    submission = taken(written(tmp_path, data, "Smith, Jr._huge_lr.tar.gz"))
    assert submission.name == "Smith, Jr._huge_lr"
    assert submission.sha256 == hashlib.sha256(data).hexdigest()
    assert submission.files == whole()
    assert (submission.missing, submission.ignored) == ((), ())
    assert (submission.manifest.student, submission.manifest.recipe) == ("ada", "huge_lr")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_else_lies_in_it_is_named_and_left(tmp_path: Path, form: int) -> None:
    long = "/".join(["a" * 60, "b" * 60, "c" * 60])  # too long for a header
    members = [member(name, b"x") for name in (long, "notes.txt", "runs/broken/best.pt", "ü/y")]
    folder = member("runs/", type=tarfile.DIRTYPE)
    submission = taken(written(tmp_path, with_members(folder, *members, form=form)))
    assert submission.ignored[0].startswith("a" * 60)
    assert submission.ignored[1:] == ("notes.txt", "runs/broken/best.pt", "ü/y")
    assert submission.files == whole()


def test_one_packed_by_hand_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    for name, content in whole().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    path = tmp_path / "ada_huge_lr.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder, ".")
    assert taken(path).files == whole()


@pytest.mark.parametrize("student", ["Smith, Jr.", "=1+1", "Zoë 日本", "O'Brien <b>", "x" * 64, "../../etc"])
def test_a_student_may_have_any_name_that_can_be_seen(tmp_path: Path, student: str) -> None:
    assert taken(written(tmp_path, packed(whole(student=student)))).manifest.student == student


@pytest.mark.parametrize(
    "student", ["", " ", "x" * 65, "a\nb", "a\x1b[31m", "a\u202eb", "a\u200bb", "\ud800", 7, None]
)
def test_a_name_that_hides_something_is_refused(tmp_path: Path, student: object) -> None:
    assert refused(tmp_path, packed(whole(student=student))).code == "manifest"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../x", "path traversal"),
        ("runs/../../x", "path traversal"),
        ("/etc/x", "absolute name"),
        ("a\\b", "absolute name"),
        ("C:/x", "absolute name"),
        ("a//b", "absolute name"),
        ("a/./b", "absolute name"),
        ("a\nb", "unprintable name"),
        ("a\x1b[31m", "unprintable name"),
        ("a\u202eb", "unprintable name"),
        ("a\udcffb", "unprintable name"),
        ("x" * 99 + "/" + "y" * 99 + "/" + "z" * 99, "name too long"),
        ("x" * 300, "name too long"),
        ("x" * (EXTENSION_BYTES + 1), "name too long"),
        ("report.md", "duplicate name"),
        ("./report.md", "duplicate name"),
        ("REPORT.md", "colliding names"),
        ("Report.MD", "colliding names"),
        ("\uff52eport.md", "colliding names"),
        ("report.md/x", "colliding names"),
        ("runs/broken", "colliding names"),
    ],
)
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_name_that_is_not_plain_is_refused(tmp_path: Path, name: str, code: str, form: int) -> None:
    refusal = refused(tmp_path, with_members(member(name, b"x"), form=form))
    assert (refusal.code, refusal.student, refusal.recipe) == (code, "ada", "huge_lr")


@pytest.mark.parametrize("names", [("é", "e\u0301"), ("ß", "SS"), ("ﬁ", "fi"), ("Å", "\u212b")])
def test_names_that_another_file_system_takes_for_one_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    data = with_members(*(member(name, b"x") for name in names), form=tarfile.PAX_FORMAT)
    assert refused(tmp_path, data).code == "colliding names"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "link"),
        ({"type": tarfile.LNKTYPE, "linkname": "report.md"}, "link"),
        ({"type": tarfile.CHRTYPE}, "device"),
        ({"type": tarfile.BLKTYPE}, "device"),
        ({"type": tarfile.FIFOTYPE}, "device"),
        ({"type": tarfile.CONTTYPE}, "unknown member"),
        ({"type": tarfile.GNUTYPE_SPARSE}, "sparse file"),
        ({"type": b"V"}, "unknown member"),
        ({"type": b"D"}, "unknown member"),
        ({"pax_headers": {"GNU.sparse.major": "1"}}, "sparse file"),
        ({"pax_headers": {"GNU.sparse.realsize": "99999999999"}}, "sparse file"),
        ({"pax_headers": {"size": "99999999999"}}, "lying header"),
        ({"pax_headers": {"linkpath": "/etc"}}, "lying header"),
        ({"pax_headers": {"path": "../x"}}, "path traversal"),
    ],
)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, fields: dict[str, Any], code: str) -> None:
    data = with_members(member("strange", **fields), form=tarfile.PAX_FORMAT)
    assert refused(tmp_path, data).code == code


@pytest.mark.parametrize(
    "record", [b"9 a=b\n", b"6 a=b", b"x", b"99999 a=b\n", b"2 \n", b"-6 a=b\n", b"5 ab\n", b"0 \n"]
)
def test_a_pax_header_that_is_none_is_refused(tmp_path: Path, record: bytes) -> None:
    data = with_members(member("x", record, type=tarfile.XHDTYPE), member("strange", b"x"))
    assert refused(tmp_path, data).code == "damaged archive"


def test_headers_of_every_kind_are_counted(tmp_path: Path) -> None:
    files = [member(f"file{number}") for number in range(HEADERS)]
    assert refused(tmp_path, with_members(*files)).code == "too many files"
    folders = [member(f"folder{number}/", type=tarfile.DIRTYPE) for number in range(HEADERS)]
    assert refused(tmp_path, with_members(*folders)).code == "too many files"
    # So many in a row took `tarfile` down by recursion.
    extensions = [member("x", b"6 a=b\n", type=tarfile.XHDTYPE) for number in range(5000)]
    assert refused(tmp_path, with_members(*extensions)).code == "too many files"


def test_a_member_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "MEMBER_BYTES", 2**20)
    assert refused(tmp_path, with_members(member("big", bytes(2**20 + 1)))).code == "file too large"


def test_a_bomb_is_never_unpacked(tmp_path: Path) -> None:
    # 1 GiB of zeros in 1 MiB; and one that holds a byte more than is allowed.
    bomb = gzip.compress(bytes(2**24), mtime=0) * 64
    compressor = gzip.compress(bytes(archive_module.UNPACKED_BYTES + 1), 9, mtime=0)
    assert len(compressor) < 2**20
    tracemalloc.start()
    first = refused(tmp_path, with_members(member("bomb", bytes(2**20))) + bomb)
    second = refused(tmp_path, compressor)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (first.code, second.code) == ("trailing data", "unpacks too large")
    assert peak < 3 * archive_module.UNPACKED_BYTES


def test_a_tarball_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b"")
    with path.open("r+b") as file:
        file.truncate(2**40)  # a hole: it takes no room on the disk
    monkeypatch.setattr(archive_module, "TARBALL_BYTES", 2**20)
    with pytest.raises(Rejected) as caught:
        read_submission(path)
    assert caught.value.code == "archive too large"


# Blocks of deflate that hold nothing: stored, and with the fixed code.
@pytest.mark.parametrize("block", [b"\0\0\0\xff\xff", bytes.fromhex("0208208000")])
def test_a_gzip_file_of_blocks_of_nothing_is_given_up_soon(block: bytes) -> None:
    class Watched(bytes):
        read = 0

        def __getitem__(self, key: Any) -> Any:
            Watched.read += len(piece := super().__getitem__(key))
            return piece

    data = Watched(b"\x1f\x8b\x08" + bytes(7) + block * (8 * 2**20 // 5))
    with pytest.raises(Rejected, match="larger than its content"):
        archive_module.gunzip(data)
    assert Watched.read < 2**21


@pytest.mark.parametrize("report", ["|\n" * 2001, "|a|\n |" + "-" * 2000, "\u00a0|\n" * 2001])
def test_a_report_that_is_all_table_is_refused(tmp_path: Path, report: str) -> None:
    files = contents(report=report.encode())
    assert refused(tmp_path, packed({**files, "manifest.json": manifest(files)})).code == "table too large"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("metrics.log", b'{"a":' * 101 + b"1" + b"}" * 101, "no log"),
        ("metrics.log", b"[" * 1000, "no log"),
        ("checkpoint.pt.meta.json", b"[" + b"[]," * 30_000 + b"[]]", "meta too large"),
    ],
)
@pytest.mark.parametrize("run", ["broken", "fixed"])
def test_a_file_that_would_hurt_who_reads_it_is_refused(
    tmp_path: Path, run: str, name: str, content: bytes, code: str
) -> None:
    files = contents(**{f"runs__{run}__{name}": content})
    data = packed({**files, "manifest.json": manifest(files)})
    assert refused(tmp_path, data).code == code


@given(st.data())
@settings(max_examples=50)
def test_a_truncated_archive_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    cut = data.draw(st.integers(0, len(WHOLE) - 1))
    assert refused(folder, WHOLE[:cut]).code in ("truncated archive", "not a tarball")
    tar = tar_of().rstrip(b"\0")
    cut = data.draw(st.integers(0, len(tar)))
    code = refused(folder, gzip.compress(tar[:cut], mtime=0)).code
    assert code in ("truncated archive", "no manifest", "missing file")


def damaged() -> bytes:
    data = bytearray(WHOLE)
    data[-6] ^= 1  # its checksum
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not a tarball"), (b"PK\x03\x04", "not a tarball"), (tar_of(), "not a tarball"),
        (WHOLE + b"x", "trailing data"), (WHOLE + b"\0" * 512, "trailing data"), (WHOLE + WHOLE, "trailing data"),
        (gzip.compress(tar_of() + b"x" * 512), "trailing data"), (gzip.compress(tar_of() * 2), "trailing data"),
        (damaged(), "damaged archive"),
    ],
)  # fmt: skip
def test_what_is_not_one_whole_gzip_file_of_one_tar_archive_is_refused(
    tmp_path: Path, data: bytes, code: str
) -> None:
    assert refused(tmp_path, data).code == code


def test_a_header_that_lies_about_its_size_is_refused(tmp_path: Path) -> None:
    tar = bytearray(tar_of())
    info = tarfile.TarInfo.frombuf(bytes(tar[:512]), "utf-8", "strict")
    for size, code in ((2**40, "truncated archive"), (2**32 - 1, "truncated archive")):
        info.size = size
        lying = info.tobuf(tarfile.GNU_FORMAT) + tar[512:]
        assert refused(tmp_path, gzip.compress(lying)).code == code
    negative = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    negative[124:136] = b"\xff" * 12  # -1 in base 256
    negative[148:156] = b" " * 8
    negative[148:156] = b"%06o\0 " % sum(negative)
    assert refused(tmp_path, gzip.compress(bytes(negative) + tar[512:])).code == "damaged archive"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    real = written(tmp_path, WHOLE, "real.tar.gz")
    link, pipe, folder = (tmp_path / f"{name}.tar.gz" for name in ("link", "pipe", "folder"))
    link.symlink_to(real)
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (link, pipe, folder, Path("/dev/zero")):
        with pytest.raises(Rejected) as caught:
            read_submission(path)
        assert caught.value.code == "not a file"


def test_a_file_that_is_not_there_is_no_fault_of_a_student(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_submission(tmp_path / "none.tar.gz")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"\xff", b"[]", b"null", b"[" * 60_000, b'{"a": ' * 10_000, b" " * 70_000,
        b'{"seed": ' + b"9" * 10_000 + b"}", manifest({})[:-1] + b', "seed": 42}',
        *(manifest({}, seed=seed) for seed in (float("nan"), 42.0, "42", True, -1, 2**32)),
        *(manifest({}, files={"report.md": digest}) for digest in ("abc", "A" * 64, "0" * 64 + "\n")),
        manifest({}, files=[]), manifest({}, more=1), manifest({}, dataset_digest="x"),
        manifest({}, format_version="1"), manifest({}, format_version=True),
        *(
            json.dumps({key: value for key, value in json.loads(manifest({})).items() if key != missing}).encode()
            for missing in json.loads(manifest({}))
        ),
    ],
)  # fmt: skip
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refused(tmp_path, packed({**contents(), "manifest.json": data})).code == "manifest"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"format_version": 2}, "format version"),
        ({"recipe": "no_such"}, "unknown recipe"),
        ({"recipe": "../huge_lr"}, "unknown recipe"),
        ({"dataset": "imagenet"}, "unknown data set"),
    ],
)
def test_a_manifest_of_another_suite_is_refused(tmp_path: Path, changed: dict[str, Any], code: str) -> None:
    assert refused(tmp_path, packed(whole(**changed))).code == code


def without(name: str) -> dict[str, bytes]:
    return {other: content for other, content in whole().items() if other != name}


@pytest.mark.parametrize(
    ("files", "code", "student"),
    [
        (contents(), "no manifest", None),
        ({**whole(student="eve"), "report.md": b"changed"}, "wrong hash", "eve"),
        (without("runs/fixed/metrics.log"), "missing file", "ada"),
        ({**contents(), "manifest.json": manifest(contents(report=None))}, "unlisted file", "ada"),
        *(
            ({**files, "manifest.json": manifest(files)}, code, "ada")
            for files, code in (
                (contents(experiment=None), "no experiment"),
                (contents(experiment=b"#" * (64 * 1024 + 1)), "text too large"),
                (contents(report=b"#" * (64 * 1024 + 1)), "text too large"),
                (contents(experiment=b"\xff"), "not UTF-8"),
            )
        ),
    ],
)
def test_files_that_are_not_those_of_the_manifest_are_refused_with_the_names(
    tmp_path: Path, files: dict[str, bytes], code: str, student: str | None
) -> None:
    refusal = refused(tmp_path, packed(files))
    assert (refusal.code, refusal.student) == (code, student)


def test_any_other_file_may_be_missing_and_is_named(tmp_path: Path) -> None:
    files = {"experiment.py": contents()["experiment.py"]}
    submission = taken(written(tmp_path, packed({**files, "manifest.json": manifest(files)})))
    assert set(submission.missing) == set(FILES) - {"experiment.py", "manifest.json"}


def with_commands(tmp_path: Path, commands: bytes | None, **changed: Any) -> Submission:
    files = contents(command=commands)
    return taken(written(tmp_path, packed({**files, "manifest.json": manifest(files, **changed)})))


def test_the_settings_of_both_runs_are_read(tmp_path: Path) -> None:
    settings = RunSettings(seed=42, dataset="digits")
    assert read_settings(with_commands(tmp_path, COMMANDS)) == {"broken": settings, "fixed": settings}
    more = COMMANDS.replace(b"digits\n", b"digits --epochs 3 --batch 8\n").replace(b"\n", b"\r\n")
    assert read_settings(with_commands(tmp_path, more))["broken"] == replace(settings, epochs=3, batch_size=8)


@pytest.mark.parametrize(
    "commands",
    [
        None,
        b"",
        COMMAND.encode(),
        COMMANDS + b"rm -rf /\n",
        COMMANDS.replace(b" --script experiment.py", b""),
        COMMANDS.replace(b"experiment.py", b"../other.py"),
        COMMANDS.replace(b"huge_lr", b"loss_sum"),
        COMMANDS.replace(b"--seed 42", b"--seed 43"),
        COMMANDS.replace(b"digits", b"mnist"),
        COMMANDS.replace(b"--seed 42", b"--seed 42 --epochs 1001", 1),
    ],
)
def test_commands_that_are_not_those_of_the_manifest_are_refused(
    tmp_path: Path, commands: bytes | None
) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        read_settings(with_commands(tmp_path, commands))


def test_the_submission_that_the_harness_makes_is_taken_as_it_is(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "work")
    path = submit(workspace, "ada", tmp_path).path
    submission = taken(path)
    assert submission.files == build_submission(workspace, "ada")
    assert (submission.missing, submission.ignored) == ((), ())
    assert f"{submission.sha256}  {path.name}\n" == path.with_name(f"{path.name}.sha256").read_text()
