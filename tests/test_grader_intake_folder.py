"""Real folders and zips from platforms, other files in them, and hostile zips.

The layouts are from canvas-lms (`lib/content_zipper.rb`), from moodle (`mod/assign/classes/downloader.php`), and from
Gradescope's "Export Submissions", which public programs read.
"""

import gzip
import io
import json
import os
import stat
import tracemalloc
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from helpers.intake_archives import packed, whole
from helpers.sandbox_marks import needs_sandbox
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.grade import score_folder
from grader.intake.archive import Rejected
from grader.intake.folder import FolderContent, HandedIn, Sender, platform_of, read_folder
from grader.intake.submission import parse_submission
from grader.intake.times import Times, read_times
from grader.report.pages import arrival_words, render_class_page
from grader.report.text import file_stem
from grader.score.identity import OTHER_NAME, Student, compare_rows, find_left_out, name_student, settle_students
from grader.score.scores_file import read_scores
from grader.score.scoring import score_as_unread
from grader.score.verdict import Scores, SubmissionScore
from grader.session import ScoreOptions
from harness.errors import UserError
from harness.written.exercise import exercise_ids

Files = Mapping[str, bytes]
MOMENT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def tarball(student: str = "ada") -> bytes:
    return packed(whole(student=student))


GOOD = tarball()
MACOS = {".DS_Store": b"1", "__MACOSX/._ada_huge_lr.tar.gz": b"2", "ada_huge_lr.tar.gz.sha256": b"3"}


def folder_of(place: Path, files: Files) -> Path:
    for name, data in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (MOMENT.timestamp(),) * 2)
    return place


def zip_of(files: Files, form: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", form) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 3, 1, 12, 30, 0)), data, form)
    return buffer.getvalue()


def found_in(place: Path, files: Files) -> FolderContent:
    return read_folder(folder_of(place, files))


def only(found: FolderContent) -> HandedIn:
    [one] = found.files
    return one


def student_in(file: HandedIn) -> str:
    return parse_submission(file.name, file.read()).student


def refusal_of(file: HandedIn) -> str:
    with pytest.raises(Rejected) as caught:
        parse_submission(file.name, file.read())
    assert caught.value.message.isprintable()
    return caught.value.code


# --- Layouts ---

CANVAS = {
    "lovelaceada_12345_67890_ada_huge_lr.tar.gz": ("lovelaceada", "12345", False, "ada_huge_lr"),
    "lovelaceada_LATE_12345_67890_ada_huge_lr-1.tar.gz": ("lovelaceada", "12345", True, "ada_huge_lr-1"),
    "o_neilljosé_7_8_jo_huge_lr.tar-1.gz": ("o_neilljosé", "7", False, "jo_huge_lr.tar-1"),
    "शर्माअमित_LATE_7_8_अमित_huge_lr.tar.gz": ("शर्माअमित", "7", True, "अमित_huge_lr"),
    "anon_x7Yz1_67890_ada_huge_lr.tar.gz": ("", "x7Yz1", False, "ada_huge_lr"),
    "LATE_anon_x7Yz1_67890_ada_huge_lr.tar.gz": ("", "x7Yz1", True, "ada_huge_lr"),
}
MOODLE = {
    "Ada Lovelace_123_assignsubmission_file_/ada_huge_lr.tar.gz": ("Ada Lovelace", "123", False, "ada_huge_lr"),
    "Ada Lovelace_123_assignsubmission_file/week 1/ada_huge_lr.tar.gz": ("Ada Lovelace", "123", False, "ada_huge_lr"),
    "Ada Lovelace_123_assignsubmission_file_ada_huge_lr.tar.gz": ("Ada Lovelace", "123", False, "ada_huge_lr"),
    "Default group_assignsubmission_file/ada_huge_lr.tar.gz": ("Default group", "", False, "ada_huge_lr"),
    # The student gave this file a name like a file from Canvas.
    "Eve_9_assignsubmission_file_/lovelaceada_1_2_ada_huge_lr.tar.gz": (
        "Eve",
        "9",
        False,
        "lovelaceada_1_2_ada_huge_lr",
    ),
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("path", [*CANVAS, *MOODLE])
def test_downloads_of_canvas_and_moodle_are_read_as_they_are(tmp_path: Path, path: str, zipped: bool) -> None:
    if zipped:
        (tmp_path / "all.zip").write_bytes(zip_of({path: GOOD}))
        found = read_folder(tmp_path / "all.zip")
    else:
        found = found_in(tmp_path / "all", {path: GOOD})
    file = only(found)
    name, id, late, stem = {**CANVAS, **MOODLE}[path]
    [sender] = file.arrival.senders
    assert (sender.name, sender.id, file.arrival.late, platform_of(path).stem) == (name, id, late, stem)
    assert student_in(file) == "ada" and file.arrival.file == path
    assert file.arrival.submitted_at is None, "these zips have the date of the download"


METADATA = b"""---
submission_123:
  :submitters:
  - :name: Ada Lovelace
    :sid: '4711'
    :email: ada@uni.example
  - :name: Bob
    :email: bob@uni.example
  :created_at: 2026-03-01 04:30:00.123456000 -08:00
  :score: 0.0
  :results: {tests: [{name: x, output: "]{["}]}
  :history:
  - :created_at: 2026-02-01 04:30:00 -08:00
submission_124:
  :submitters:
  - :name: Cem
  :created_at: 2026-03-01 12:30:00 Z
"""


def test_the_list_of_gradescope_says_who_and_when(tmp_path: Path) -> None:
    files = {
        "assignment_1_export/submission_metadata.yml": METADATA,
        "assignment_1_export/submission_123/ada_huge_lr.tar.gz": GOOD,
        "assignment_1_export/submission_124/experiment.py": b"",
        "assignment_1_export/submission_125/ada_huge_lr.tar.gz": GOOD,
    }
    found = found_in(tmp_path, files)
    ada, cem, unlisted = found.files
    assert [(one.name, one.id, one.email) for one in ada.arrival.senders] == [
        ("Ada Lovelace", "4711", "ada@uni.example"),
        ("Bob", "", "bob@uni.example"),
    ]
    assert (ada.arrival.submitted_at, ada.arrival.time_from) == (MOMENT, "Gradescope")
    assert cem.arrival.submitted_at == MOMENT and refusal_of(cem) == "no archive"
    assert unlisted.arrival.senders == () and unlisted.arrival.submitted_at is None
    assert found.ignored == {"lists of the platform": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"submission_123: [",
        b"- " * 5000 + b"x",
        b"\xff\xfe\xfa",
        b"!!python/object:os.system {}",
        b"a: &a [*a, *a]",
        b"?",
    ],
)
def test_a_list_that_cannot_be_used_stops_nothing(tmp_path: Path, data: bytes) -> None:
    found = found_in(tmp_path, {"submission_metadata.yml": data, "submission_123/ada_huge_lr.tar.gz": GOOD})
    assert [student_in(file) for file in found.files if file.problem is None] == ["ada"]
    assert len(found.files) + sum(found.ignored.values()) == 2


def test_a_students_own_list_is_none(tmp_path: Path) -> None:
    inside = "Eve_9_assignsubmission_file_"
    files = {f"{inside}/submission_metadata.yml": METADATA, f"{inside}/submission_123/ada_huge_lr.tar.gz": GOOD}
    found = found_in(tmp_path, files)
    assert {one.name for file in found.files for one in file.arrival.senders} == {"Eve"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ada_huge_lr.tar", None),
        ("ada_huge_lr.tgz", GOOD),
        ("ada_huge_lr.tar (1).gz", GOOD),
        ("ada_huge_lr.TAR.GZ", GOOD),
        ("ada_huge_lr.zip", zip_of({"ada_huge_lr.tar.gz": GOOD, **MACOS})),
        ("lovelaceada_1_2_ada_huge_lr.zip", zip_of({"ada_huge_lr.tar.gz": GOOD, **MACOS}, zipfile.ZIP_STORED)),
    ],
)
def test_what_a_browser_or_a_platform_made_of_a_tarball_is_read(tmp_path: Path, name: str, data: bytes | None) -> None:
    file = only(found_in(tmp_path, {name: gzip.decompress(GOOD) if data is None else data}))
    assert student_in(file) == "ada"


def test_a_zip_in_a_platforms_zip_is_its_senders(tmp_path: Path) -> None:
    inner = zip_of({"x_1_2_bob_huge_lr.tar.gz": GOOD, "more.zip": zip_of({"ada_huge_lr.tar.gz": GOOD})})
    (tmp_path / "all.zip").write_bytes(zip_of({"lovelaceada_1_2_mine.zip": inner}))
    deep, one = read_folder(tmp_path / "all.zip").files
    assert [file.arrival.senders[0].name for file in (one, deep)] == ["lovelaceada"] * 2
    assert student_in(one) == "ada" and refusal_of(deep) == "zip in a zip"


def test_a_name_in_utf_8_is_read_whatever_the_zip_says(tmp_path: Path) -> None:
    data = zip_of({"zoë_huge_lr.tar.gz": GOOD})
    name = "zoë_huge_lr.tar.gz".encode()
    at = data.rindex(name) - 46
    assert data[at : at + 4] == b"PK\x01\x02"
    (tmp_path / "all.zip").write_bytes(data[: at + 8] + b"\0\0" + data[at + 10 :])
    assert only(read_folder(tmp_path / "all.zip")).name == "zoë_huge_lr"


# --- Everything has a row ---


def test_what_is_no_submission_has_a_row_with_the_reason(tmp_path: Path) -> None:
    files = {
        "ada_huge_lr.tar.gz": GOOD,
        "experiment.py": b"",
        "notes": b"",
        "bob_huge_lr/experiment.py": b"",
        "bob_huge_lr/runs/fixed/metrics.log": b"",
        "Cem_1_assignsubmission_onlinetext_/onlinetext.html": b"",
        "team/dan_huge_lr.tar.gz": GOOD,
        "team/extra.txt": b"",
        ".hidden": b"",
        **MACOS,
    }
    folder_of(tmp_path, files)
    (tmp_path / "empty").mkdir()
    (tmp_path / "eve_huge_lr.tar.gz").mkdir()
    (tmp_path / "fay_huge_lr.tar.gz").symlink_to("ada_huge_lr.tar.gz")
    found = read_folder(tmp_path)
    rows = {file.name: file for file in found.files}
    assert {
        name: refusal_of(file) for name, file in rows.items() if not name.endswith(("ada_huge_lr", "dan_huge_lr"))
    } == {
        "experiment.py": "no archive",
        "notes": "no archive",
        "bob_huge_lr": "no archive",
        "Cem_1_assignsubmission_onlinetext_/onlinetext.html": "no archive",
        "team/extra.txt": "no archive",
        "eve_huge_lr": "not a file",
        "fay_huge_lr": "not a file",
    }
    assert rows["bob_huge_lr"].files == 2
    assert found.ignored == {"checksums": 1, "empty folders": 1, "hidden files": 1, "system files": 2}


def test_a_folder_without_any_archive_is_a_mistake_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contains no \.tar\.gz file.*experiment\.py"):
        found_in(tmp_path, {"experiment.py": b""})
    with pytest.raises(UserError, match="There is no folder"):
        read_folder(tmp_path / "none")
    (tmp_path / "all.zip").write_bytes(b"no zip")
    with pytest.raises(UserError, match=r"all\.zip cannot be read: The zip is damaged"):
        read_folder(tmp_path / "all.zip")


_PARTS = st.sampled_from(
    [
        "ada_huge_lr.tar.gz", "ada_huge_lr", "x.py", "a.zip", ".DS_Store", "__MACOSX", "b", "submission_1", ".git",
        "Eve_1_assignsubmission_file_", "x_1_2_ada_huge_lr.tar.gz", "submission_metadata.yml", "c\\d", "é", ".x",
    ]
)  # fmt: skip
_PATHS = st.lists(_PARTS, min_size=1, max_size=4).map("/".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sets(_PATHS, min_size=1, max_size=12))
def test_the_files_found_are_rows_or_ignored(tmp_path_factory: pytest.TempPathFactory, paths: set[str]) -> None:
    place = tmp_path_factory.mktemp("found")
    files = {path: GOOD for path in paths if not any(other.startswith(f"{path}/") for other in paths)}
    files["last.tar.gz"] = GOOD
    (place / "all.zip").write_bytes(zip_of(files))
    folder = folder_of(place / "folder", files)
    for found in (read_folder(folder), read_folder(place / "all.zip")):
        assert sum(file.files for file in found.files) + sum(found.ignored.values()) == len(files)
        names = [file.name for file in found.files]
        assert len(set(names)) == len(names) and names == sorted(names)


# --- Hostile zips ---


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    """Return a zip with one member and changed bytes in its directory record."""
    at = data.rindex(b"PK\x01\x02") + offset
    return data[:at] + new + data[at + len(new) :]


ONE = zip_of({"ada_huge_lr.tar.gz": GOOD})


def lying(name: str) -> bytes:
    return zip_of({name: GOOD})


HOSTILE = {
    "encrypted": (patched(ONE, 8, b"\1\0"), "encrypted"),
    "a link": (patched(ONE, 38, (stat.S_IFLNK << 16).to_bytes(4, "little")), "link"),
    "bzip2": (zip_of({"ada_huge_lr.tar.gz": GOOD}, zipfile.ZIP_BZIP2), "unknown member"),
    "another sum": (patched(ONE, 16, b"\0\0\0\0"), "damaged archive"),
    "another size": (patched(ONE, 24, (100).to_bytes(4, "little")), "damaged archive"),
    "a huge size": (patched(ONE, 24, b"\xfe\xff\xff\xff"), "archive too large"),
    "another place": (patched(ONE, 42, (7).to_bytes(4, "little")), "damaged archive"),
    "a bomb": (zip_of({"ada_huge_lr.tar.gz": bytes(8 << 20)}), "unpacks too large"),
    "a climb": (lying("../../ada_huge_lr.tar.gz"), "path traversal"),
    "a root": (lying("/etc/ada_huge_lr.tar.gz"), "absolute name"),
    "a drive": (lying("C:/ada_huge_lr.tar.gz"), "absolute name"),
    "a backslash": (lying("..\\ada_huge_lr.tar.gz"), "absolute name"),
    "a turned name": (lying("\u202eada_huge_lr.tar.gz"), "unprintable name"),
    "a long name": (lying(f"{'a' * 300}.tar.gz"), "name too long"),
    "no directory": (ONE[:-30], "damaged archive"),
    "no zip": (b"PK", "damaged archive"),
    "many members": (zip_of({f"{number}.tar.gz": b"" for number in range(60)}), "too many files"),
    "empty": (zip_of({}), "no archive"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_zip_is_one_rejected_row(tmp_path: Path, what: str) -> None:
    data, code = HOSTILE[what]
    before = sorted(tmp_path.parent.iterdir())
    files = {"Eve_1_assignsubmission_file_/eve.zip": data, "ada_huge_lr.tar.gz": GOOD}
    found = found_in(tmp_path / "in", files)
    [eve] = [file for file in found.files if file.arrival.senders]
    assert refusal_of(eve) == code
    assert sorted(tmp_path.parent.iterdir()) == before and [*tmp_path.iterdir()] == [tmp_path / "in"]


def test_a_zip_that_lies_about_its_directory_is_not_believed(tmp_path: Path) -> None:
    fields = (1 << 30).to_bytes(4, "little")
    at = ONE.rindex(b"PK\x05\x06") + 12
    data = ONE[:at] + fields + ONE[at + 4 :]
    entries = b"".join(ONE[ONE.rindex(b"PK\x01\x02") : ONE.rindex(b"PK\x05\x06")] for _ in range(200_000))
    end = ONE[ONE.rindex(b"PK\x05\x06") :]
    many = entries + end[:12] + len(entries).to_bytes(4, "little") + bytes(4) + end[20:]
    for hostile in (data, many):
        files = {"ada_huge_lr.tar.gz": GOOD, "eve.zip": hostile}
        tracemalloc.start()
        found = found_in(tmp_path, files)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert refusal_of(found.files[1]) in ("damaged archive", "too many files")
        assert peak < 40 << 20


def test_equal_names_in_a_zip_are_two_rows(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        for student in ("ada", "bob"):
            archive.writestr("ada_huge_lr.tar.gz", tarball(student))
    (tmp_path / "all.zip").write_bytes(buffer.getvalue())
    found = read_folder(tmp_path / "all.zip")
    assert {file.name: student_in(file) for file in found.files} == {"ada_huge_lr": "ada", "ada_huge_lr (2)": "bob"}


# --- Times ---


def times_of(tmp_path: Path, text: str, name: str = "times.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def told(tmp_path: Path, text: str, people: Sequence[Sequence[str]] = (), zone: tzinfo | None = None) -> Times:
    path = times_of(tmp_path, text)
    return Times(read_times(path, zone), path.name, people, exercise_ids())


@pytest.mark.parametrize(
    "line",
    [
        "ADA,2026-03-01T12:30:00Z",
        "who,when\nada,2026-03-01T13:30:00+01:00",
        "12345,2026-03-01 12:30:00+00:00",
        "lovelaceada_12345_67890_ada_huge_lr.tar.gz,2026-03-01T12:30:00Z",
        "\ufefflovelaceada,2026-03-01T12:30Z\n\n",
    ],
)
def test_a_table_tells_the_times_that_a_platform_does_not(tmp_path: Path, line: str) -> None:
    folder = folder_of(tmp_path / "in", {"lovelaceada_12345_67890_ada_huge_lr.tar.gz": GOOD})
    arrival = only(read_folder(folder, told(tmp_path, line))).arrival
    assert (arrival.submitted_at, arrival.time_from) == (MOMENT, "times.csv")


def test_a_table_may_name_what_the_platform_lists_around_a_file(tmp_path: Path) -> None:
    path = "Ada Lovelace_123_assignsubmission_file/ada.d/ada_huge_lr.tar.gz"
    folder = folder_of(tmp_path / "in", {path: GOOD})
    for line in ("Ada Lovelace_123_assignsubmission_file", "Ada Lovelace_123_assignsubmission_file/ada.d"):
        arrival = only(read_folder(folder, told(tmp_path, f"{line},2026-03-01T12:30:00Z"))).arrival
        assert arrival.submitted_at == MOMENT


@pytest.mark.parametrize("name", ["ADA", "ada@example.org", "ada lovelace", "Ada Lovelace"])
@pytest.mark.parametrize("path", ["ada_huge_lr.tar.gz", "Ada Lovelace_123_assignsubmission_file/x.tar.gz"])
def test_a_table_may_use_any_name_of_the_roster_and_what_nothing_has_is_listed(
    tmp_path: Path, name: str, path: str
) -> None:
    folder = folder_of(tmp_path / "in", {path: GOOD})
    people = [("ada", "Ada Lovelace", "ada@example.org"), ("bob", "Bob", ""), ("rob", "Bob", "")]
    times = f"{name},2026-03-01T12:30:00Z\nadda,2026-03-02T12:30:00Z\nBob,2026-03-02T12:30:00Z"
    found = read_folder(folder, told(tmp_path, times, people))
    assert (only(found).arrival.submitted_at, found.unused) == (MOMENT, ("Bob", "adda"))


def test_what_is_typed_into_canvas_is_its_senders(tmp_path: Path) -> None:
    files = {f"turingalan_{late}7_text.html": b"<p>Hello</p>" for late in ("", "LATE_")}
    for file in found_in(tmp_path / "in", {**files, "ada_huge_lr.tar.gz": GOOD}).files[1:]:
        assert file.arrival.senders == (Sender(platform="Canvas", name="turingalan", id="7"),)
        assert file.arrival.late == ("LATE" in file.name)
        assert file.problem is not None and "typed into the platform" in file.problem.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ada,2026-03-01T12:30:00", 1),
        ("who,when\nada,yesterday", 2),
        ("ada,2026-13-01T12:30:00Z", 1),
        ("a\nada", 2),
        (",2026-03-01T12:30:00Z", 1),
        ("ada,2026-03-01T12:30:00Z\nAda,2026-03-02T12:30:00Z", 2),
    ],
)
def test_a_wrong_time_is_named(tmp_path: Path, text: str, line: int) -> None:
    folder = folder_of(tmp_path / "in", {"ada_huge_lr.tar.gz": GOOD})
    with pytest.raises(UserError, match=rf"times\.csv, line {line}: "):
        read_folder(folder, told(tmp_path, text))


def test_the_date_of_a_file_is_the_time_of_its_submission_only_if_the_instructor_says_so(tmp_path: Path) -> None:
    files = {"ada_huge_lr.tar.gz": GOOD, "bob.zip": zip_of({"bob_huge_lr.tar.gz": GOOD})}
    assert {file.arrival.submitted_at for file in found_in(tmp_path / "in", files).files} == {None}
    for file in read_folder(tmp_path / "in", trust_dates=True).files:
        assert (file.arrival.submitted_at, file.arrival.time_from) == (MOMENT, "the file's date")
    # A student can choose the dates inside a zip.
    os.utime(tmp_path / "in" / "bob.zip", (0, 0))
    found = read_folder(tmp_path / "in", trust_dates=True)
    assert found.files[1].arrival.submitted_at == datetime.fromtimestamp(0, UTC)


SUBMISSIONS_API = [
    {"user_id": 77, "submitted_at": "2026-03-01T12:30:00Z", "late": False,
     "user": {"id": 77, "login_id": "ada", "sortable_name": "Lovelace, Ada", "name": "Ada Lovelace"}},
    {"user_id": 78, "submitted_at": None, "user": {"login_id": "bob"}},
    {"user_id": 79, "submitted_at": "2026-03-02T12:30:00+01:00", "anonymous_id": "x7Yz1"},
]  # fmt: skip
WORKSHEET = (
    '"Identifier","Full name","Email address","Status","Grade","Last modified (submission)","Online text"\n'
    '"Participant 77","Ada Lovelace","ada@uni.example","Submitted","","Sunday, 1 March 2026, 1:30 PM","a, ""b""\nc"\n'
    '"Participant 78","Bob","bob@uni.example","No submission","","-",""\n'
)
GRADES = "First Name,Last Name,SID,Email,Submission Time\nAda,Lovelace,77,ada@uni.example,2026-03-01 04:30:00 -0800\n"
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    "path",
    [
        "lovelaceada_77_5_ada_huge_lr.tar.gz",
        "Ada Lovelace_77_assignsubmission_file/x.tar.gz",
        "Lovelace Ada_4_assignsubmission_file/x.tar.gz",
    ],
)
@pytest.mark.parametrize(
    "table", [json.dumps(SUBMISSIONS_API), WORKSHEET, GRADES, "name,time\nada lovelace,2026-03-01T13:30:00"]
)
def test_what_platforms_export_tells_the_times(tmp_path: Path, table: str, path: str) -> None:
    folder = folder_of(tmp_path / "in", {path: GOOD})
    people = [Student("ada", "Ada Lovelace", "ada@uni.example", ids=("77",)).names]
    found = read_folder(folder, told(tmp_path, table, people, BERLIN))
    assert only(found).arrival.submitted_at == MOMENT
    assert len(found.unused) == (table.startswith("["))


def test_a_name_of_two_people_tells_no_time(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", {"Ada Lovelace_4_assignsubmission_file/x.tar.gz": GOOD})
    again = GRADES + "Ada,Lovelace,78,al@uni.example,2026-03-02 04:30:00 -0800\n"
    assert only(read_folder(folder, told(tmp_path, again))).arrival.submitted_at is None


def test_a_time_without_a_zone_is_one_of_the_course(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "in", {"ada_huge_lr.tar.gz": GOOD})
    line = "ada,2026-03-01T13:30:00"
    assert only(read_folder(folder, told(tmp_path, line, zone=BERLIN))).arrival.submitted_at == MOMENT
    with pytest.raises(UserError, match=r"with its time zone, as in ada,2026-03-01T23:59:00\+01:00"):
        told(tmp_path, line)


@pytest.mark.parametrize(
    "text", ["[1]", "[{}]", "[", '[{"submitted_at": "soon"}]', '{"errors": []}', '[{"submitted_at": 5}]']
)
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="is not the JSON of Canvas' submissions"):
        told(tmp_path, text)


def test_gradescopes_time_goes_before_the_table(tmp_path: Path) -> None:
    files = {"submission_metadata.yml": METADATA, "submission_124/ada_huge_lr.tar.gz": GOOD}
    folder = folder_of(tmp_path / "in", files)
    assert only(read_folder(folder, told(tmp_path, "ada,2020-01-01T00:00:00Z"))).arrival.submitted_at == MOMENT


# --- Identity of the student ---


ROSTER = (Student("ada", "Ada Lovelace", "ada@uni.example"), Student("eve", "Eve Smith"))


def rows_of(tmp_path: Path, files: Files) -> list[SubmissionScore]:
    """Return the rows of these files, each with the student whom file and manifest name, without replays."""
    rows = []
    for file in found_in(tmp_path, files).files:
        try:
            read = parse_submission(file.name, file.read())
            row = score_as_unread(file.name, "", student=read.student, exercise=read.recipe).row
        except Rejected as error:
            row = score_as_unread(
                file.name, error.code, student=error.student, exercise=error.recipe, rejected=True
            ).row
        rows.append(replace(name_student(row, exercise_ids()), arrival=file.arrival))
    return rows


def students(rows: tuple[SubmissionScore, ...]) -> dict[str, tuple[str, bool]]:
    return {row.submission: (row.student, any(flag.id == OTHER_NAME for flag in row.flags)) for row in rows}


ADA = "lovelaceada_1_10_ada_huge_lr"
EVE = "smitheve_2_20_ada_huge_lr"


@pytest.mark.parametrize("roster", [(), ROSTER])
def test_who_hands_in_under_another_students_name_takes_nothing_from_her(
    tmp_path: Path, roster: tuple[Student, ...]
) -> None:
    rows = settle_students(rows_of(tmp_path, {f"{ADA}.tar.gz": GOOD, f"{EVE}.tar.gz": GOOD}), roster)
    assert students(rows) == {ADA: ("ada", False), EVE: ("eve" if roster else "smitheve", True)}
    assert find_left_out(compare_rows(rows)).keys() == {EVE}
    assert [row.not_counting == "" for row in compare_rows(rows)] == [True, False]


def test_without_a_roster_two_senders_of_one_login_that_fits_neither_both_wait(tmp_path: Path) -> None:
    names = {name: name.replace("_ada_", "_x17_") for name in (ADA, EVE)}
    rows = settle_students(rows_of(tmp_path, {f"{name}.tar.gz": tarball("x17") for name in names.values()}))
    assert find_left_out(compare_rows(rows)).keys() == set(names.values())


@pytest.mark.parametrize("roster", [(), ROSTER])
@pytest.mark.parametrize("data", [b"broken", packed({**whole(), "experiment.py": b"other"}), GOOD[:-1]])
def test_a_rejected_file_with_another_students_name_is_not_hers(
    tmp_path: Path, roster: tuple[Student, ...], data: bytes
) -> None:
    rows = settle_students(
        rows_of(tmp_path, {f"{ADA}.tar.gz": GOOD, f"{EVE}.tar.gz": data, f"x_9_{ADA[18:]}.tar.gz": data}), roster
    )
    found = students(rows)
    assert found[ADA] == ("ada", False) and found[EVE][0] == ("eve" if roster else "smitheve")
    assert ADA not in find_left_out(compare_rows(rows))


def test_one_sender_in_two_assignments_and_in_a_group_is_no_rival_of_himself(tmp_path: Path) -> None:
    files = {
        "one/Ada Lovelace_1_assignsubmission_file_/x17_huge_lr.tar.gz": tarball("x17"),
        "two/Ada Lovelace_2_assignsubmission_file_/x17_huge_lr.tar.gz": tarball("x17"),
    }
    assert set(students(settle_students(rows_of(tmp_path, files))).values()) == {("x17", False)}


def test_a_broken_file_of_a_platform_is_its_senders(tmp_path: Path) -> None:
    files = {"Ada Lovelace_1_assignsubmission_file_/mine.tar.gz": b"broken", "x/bob_huge_lr.tar.gz": GOOD}
    ada, _ = settle_students(rows_of(tmp_path, files), ROSTER)
    assert (ada.student, ada.status) == ("ada", "rejected")


def test_a_broken_attempt_takes_no_place_from_a_whole_one(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, {"ada_huge_lr-2.tar.gz": GOOD, "ada_huge_lr.tar.gz": GOOD[:-1], "ada_huge_lr.py": b""})
    assert find_left_out(compare_rows(rows)).keys() == {"ada_huge_lr", "ada_huge_lr.py"}


def test_moodle_takes_an_apostrophe_out_of_a_files_name(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, {"obrien@x.org_huge_lr.tar.gz": tarball("o'brien@x.org")})
    assert (row.student, row.flags) == ("o'brien@x.org", ())
    [row] = rows_of(tmp_path / "two", {"eve@ada_huge_lr.tar.gz": GOOD})
    assert row.flags[0].id == OTHER_NAME, "an address may hold @"


# --- A student's upload proves nothing about its sender ---

MOODLE_ADA = "Ada Lovelace_123_assignsubmission_file_"
FORGED: Files = {
    f"{MOODLE_ADA}/ada_huge_lr.tar.gz": GOOD,
    f"{MOODLE_ADA}ada_huge_lr.tar.gz": GOOD,
    "lovelaceada_LATE_1_10_ada_huge_lr.tar.gz": GOOD,
    "submission_123/ada_huge_lr.tar.gz": GOOD,
    "submission_metadata.yml": METADATA,
}
BOB = {"bob_huge_lr.tar.gz": tarball("bob")}
GRADESCOPE_LIST = b"submission_7:\n  :submitters:\n  - :name: Eve\n  :created_at: 2026-03-02 12:30:00 Z\n"
# The class as the platform delivers it, the place of Eve's upload in it, and the sender.
CLASSES: dict[str, tuple[Files, str, str]] = {
    "Canvas": ({"bobson_3_30_bob_huge_lr.tar.gz": GOOD}, "smitheve_2_20_", "smitheve"),
    "Moodle": ({"Bob_3_assignsubmission_file_/bob_huge_lr.tar.gz": GOOD}, "Eve_2_assignsubmission_file_/", "Eve"),
    "Moodle, flat": ({"Bob_3_assignsubmission_file_bob_huge_lr.tar.gz": GOOD}, "Eve_2_assignsubmission_file_", "Eve"),
    "Gradescope": (
        {"x/submission_metadata.yml": GRADESCOPE_LIST, "x/submission_6/bob_huge_lr.tar.gz": GOOD},
        "x/submission_7/",
        "Eve",
    ),
    "plain": (BOB, "", ""),
    "a folder each": ({f"bob/{name}": data for name, data in BOB.items()}, "eve/", ""),
}


@pytest.mark.parametrize("form", ["folder", "zip", "zip in a folder", "folder in a folder"])
@pytest.mark.parametrize("platform", CLASSES)
def test_names_and_lists_in_an_upload_are_not_the_platforms(tmp_path: Path, platform: str, form: str) -> None:
    honest, at, sender = CLASSES[platform]
    uploads: dict[str, bytes] = {f"{at}eve.zip": zip_of(FORGED)}
    if at.endswith("/"):
        uploads |= {f"{at}{name}": data for name, data in FORGED.items()}
    elif at:  # the student can choose the end of the name
        uploads |= {
            f"{at}{name}": data
            for name, data in FORGED.items()
            if "/" not in name and name != "submission_metadata.yml"
        }
    files = {**honest, **uploads}
    if "in a folder" in form:
        files = {f"week 1/{name}": data for name, data in files.items()}
    folder_of(tmp_path / "in", {"all.zip": zip_of(files)} if "zip" in form else files)
    place = tmp_path / "in" / "all.zip" if form == "zip" else tmp_path / "in"
    found = read_folder(place)
    eves = [file for file in found.files if "bob_huge_lr" not in file.name]
    assert len(eves) == len(FORGED) + (len(uploads) - 1)
    assert {tuple(one.name for one in file.arrival.senders) for file in eves} == {(sender,) if sender else ()}
    assert not any(file.arrival.late for file in eves)
    dated = platform == "Gradescope"
    assert {file.arrival.time_from == "Gradescope" for file in eves} == {dated}
    if not sender:
        dated_files = read_folder(place, trust_dates=True).files
        assert {file.arrival.submitted_at for file in dated_files if "eve.zip" in file.name} == {MOMENT}
    lists = found.ignored.get("lists of the platform", 0)
    assert lists == (1 if dated else 0)


def test_a_forged_sender_is_flagged_and_takes_no_row(tmp_path: Path) -> None:
    rows = settle_students(rows_of(tmp_path, {"ada_huge_lr.tar.gz": GOOD, "eve.zip": zip_of(FORGED)}), ROSTER)
    flags = {row.submission: [flag.id for flag in row.flags] for row in rows}
    assert flags.pop("ada_huge_lr") == []
    assert flags[f"eve.zip/{MOODLE_ADA}/ada_huge_lr"] == ["odd name"]
    assert "ada_huge_lr" not in find_left_out(compare_rows(rows))


def test_several_downloads_may_lie_in_one_place(tmp_path: Path) -> None:
    weeks = {f"week {number}.zip": zip_of({f"Ada_{number}_assignsubmission_file_/x.tar.gz": GOOD}) for number in (1, 2)}
    found = found_in(tmp_path / "in", {**weeks, "notes.txt": b""})
    assert [one.id for file in found.files for one in file.arrival.senders] == ["1", "2"]
    # A student who hands in a zip of this form is not believed if other students do not.
    found = found_in(tmp_path / "in", {"bob.zip": zip_of(BOB)})
    assert [file.arrival.senders for file in found.files] == [()] * 4


def test_a_student_takes_no_other_students_time_by_a_files_name(tmp_path: Path) -> None:
    names = ("ada_1_eve_huge_lr.tar.gz", "ada_eve_huge_lr.tar.gz", "eve_huge_lr-1.tar.gz", "ada_huge_lr (2).tar.gz")
    folder = folder_of(tmp_path / "in", dict.fromkeys(names, GOOD))
    found = read_folder(folder, told(tmp_path, "ada,2020-01-01T00:00:00Z"))
    early = [file.name for file in found.files if file.arrival.time_from == "times.csv"]
    assert early == ["ada_huge_lr (2)"]


# --- The command ---


@needs_sandbox
def test_the_command_counts_everything_and_each_page_says_when_and_from_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path / "replays"))
    files = {"lovelaceada_LATE_1_2_ada_huge_lr.tar.gz": b"", "bob_huge_lr.tar.gz": b"", "experiment.py": b"", **MACOS}
    folder, out = folder_of(tmp_path / "in", files), tmp_path / "reports"
    (folder / "ada_huge_lr.tar.gz.sha256").unlink()
    times = times_of(tmp_path, "lovelaceada,2026-03-02T12:30:00Z")
    assert score_folder(folder, ScoreOptions(out=out, jobs=1, times=times)) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "In all: 2 submissions (0 graded, 2 rejected, 0 not judged), 1 other file, ignored system files (2)."
    )
    ada = "lovelaceada_LATE_1_2_ada_huge_lr"
    rows = {row.submission: row.arrival for row in read_scores(out).submissions}
    assert rows.keys() == {ada, "bob_huge_lr", "experiment.py"}
    assert (arrival := rows[ada]) is not None and arrival.late and arrival.time_from == "times.csv"
    for name, words in {
        ada: "Canvas: sent by lovelaceada. Handed in at 2026-03-02 12:30:00 UTC (times.csv). Canvas marks it",
        "bob_huge_lr": "The time of submission is unknown.",
    }.items():
        assert words in (out / f"{file_stem(name)}.html").read_text()
    assert "2026-03-02 12:30 UTC, late" in (out / "index.html").read_text()


def test_every_page_says_whether_the_submission_counts(tmp_path: Path) -> None:
    rows = compare_rows(rows_of(tmp_path, {"ada_huge_lr.tar.gz": GOOD, "ada_huge_lr-2.tar.gz": GOOD}))
    words = {row.submission: arrival_words(row).partition("The time of submission is unknown. ")[2] for row in rows}
    assert words["ada_huge_lr"] == "The submission counts."
    assert words["ada_huge_lr-2"].startswith("The submission does not count: ") and words["ada_huge_lr-2"].endswith(
        "ada_huge_lr counts."
    )
    index = "".join(render_class_page(Scores(provenance={}, submissions=rows)))
    assert ">counts<" in index and ">does not count<" in index
