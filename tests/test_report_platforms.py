"""Fill in exports of Canvas and Moodle, and read them again with the rules of their imports.

Canvas: lib/gradebook_importer.rb and Assignment#infer_comment_context_from_filename of instructure/canvas-lms. Moodle:
mod/assign/feedback/offline/importgradeslib.php and mod/assign/feedback/file/importziplib.php.
"""

import csv
import io
import re
import tarfile
from pathlib import Path

import pytest
from helpers.made_up_class import HOSTILE, changed, make_row, scores_of

from grader.report.gradebook import Students, exercises_of, grade, students_of
from grader.report.platforms import Filled, canvas_files, fill_canvas, fill_moodle, moodle_files
from grader.score.verdict import SubmissionScore, lost, open_item
from harness.errors import UserError

LOST = changed("fix.minimal", lost, "Big.", "Be small.", points=2.5)
OPEN = changed("fix.correct", open_item, "Who knows?")

GRADEBOOK = """\
Student,ID,SIS User ID,SIS Login ID,Section,Notes,Week 3 (12345),Essay (12346),Assignments Current Score,Final Grade (7)
,,,,,,Manual Posting,,,
    Points Possible,,,,,,10.00,50.00,(read only),(read only)
"Lovelace, Ada",101,s1,ada,A,private,5.00,44.00,90,A
"=cmd()",102,s2,bob@uni.edu,"@B",,,45.00,91,A
"Hopper, Grace",103,grace,ghopper,B,,,46.00,92,A
"Student, Test",104,,8f3a,A,,,,,
"""
WORKSHEET = """\
\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,Last modified (submission),\
Online text,Last modified (grade),Feedback comments
Participant 7001,Ada Lovelace,ada@uni.edu,Submitted,,20.00,Yes,"Tuesday, 3 March 2026, 10:00 AM",=1+1,-,
Participant 7002,Grace_B O'Hopper,grace@uni.edu,Submitted,12.00,20.00,Yes,-,,"Monday, 2 March 2026, 9:00 AM",Old
Participant 7003,Nobody Else,else@uni.edu,No submission,,20.00,Yes,-,,-,
"""


def canvas_import(data: bytes, delimiter: str = ",") -> dict[str, dict[str, str]]:
    """Return the grades that the import would set, by Canvas' number of a student and number of the assignment."""
    header, *rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter, strict=True)
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert header[2:4] == ["SIS User ID", "SIS Login ID"]
    assert "Section" in header[4], "the last column about the student"
    numbers = {}
    for place, name in enumerate(header[5:], start=5):
        found = re.fullmatch(r"(.*)\s\((\d+)\)", name)
        assert found, f"{name} would become a new assignment"
        numbers[place] = found[2]
    marks = [row for row in rows if "Points Possible" in row[0]]
    assert len(marks) == 1
    assert not any("read only" in mark for mark in marks[0])
    return {row[1]: {number: row[place] for place, number in numbers.items()} for row in rows if row not in marks}


def moodle_import(data: bytes, delimiter: str = ",") -> dict[int, tuple[float, str]]:
    """Return the grade and the feedback that the import would set, by participant."""
    rows = csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=delimiter, strict=True)
    assert rows.fieldnames is not None
    assert {"Identifier", "Grade", "Last modified (grade)"} <= {*rows.fieldnames}
    found = {}
    for row in rows:
        number = int(row["Identifier"][len("Participant ") :])
        assert 0 <= float(row["Grade"]) <= float(row["Maximum grade"])
        found[number] = (float(row["Grade"]), row["Feedback comments"])
    return found


def canvas_owner(name: str) -> tuple[str, str]:
    """Return the user and the attachment that Canvas reads from the name of a feedback file."""
    user, attachment = [part for part in name.split("_") if re.fullmatch(r"\d+", part)][:2]
    assert not name.split("_")[-1].startswith("link")
    return user, attachment


def moodle_owner(path: str, participants: set[int]) -> tuple[int, str]:
    """Return the participant and the file name that Moodle reads from a path inside the zip."""
    parts = path.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) < 4 or not info[1].isdigit() or int(info[1]) not in participants:
            continue
        assert info[2:4] == ["assignsubmission", "file"]
        return int(info[1]), "/".join([*info[4:], *parts]).lstrip("/")
    raise AssertionError(f"Moodle ignores {path}")


def class_of(*rows: SubmissionScore) -> Students:
    return students_of(scores_of(*rows))


def canvas(tmp_path: Path, students: Students, text: str = GRADEBOOK, **options: object) -> Filled:
    path = tmp_path / "exported.csv"
    path.write_text(text, encoding="utf-8")
    return fill_canvas(students, path, **{"overwrite": True, **options})  # type: ignore[arg-type]


def moodle(tmp_path: Path, students: Students, text: str = WORKSHEET, **options: object) -> Filled:
    path = tmp_path / "worksheet.csv"
    path.write_text(text, encoding="utf-8")
    return fill_moodle(students, path, **{"overwrite": True, **options})  # type: ignore[arg-type]


ADA = make_row("ada_steep", "ada", "steep", LOST)
BOB = make_row("bob@uni.edu_steep", "Bob@uni.edu", "steep", {})
GRACE = make_row("grace_steep", "grace", "steep", OPEN)
STRANGER = make_row("eve_steep", "eve", "steep", {})


def test_moodles_maximum_may_be_written_with_a_capital_letter_and_must_be_there(tmp_path: Path) -> None:
    capital = WORKSHEET.replace("Maximum grade", "Maximum Grade")
    before, after = (moodle(tmp_path, class_of(ADA), text).table for text in (WORKSHEET, capital))
    assert after == before.replace(b"Maximum grade", b"Maximum Grade")
    with pytest.raises(UserError, match="has no column Maximum grade"):
        moodle(tmp_path, class_of(ADA), WORKSHEET.replace("Maximum grade", "Scale"))


# --- Canvas ---


def test_canvas_gets_the_grades_of_one_column_and_nothing_else(tmp_path: Path) -> None:
    filled = canvas(tmp_path, class_of(ADA, BOB, GRACE, STRANGER), column="Week 3")
    # 94.5 and 100 of 100, scaled to 10. An open grade and a student without a submission have no row.
    assert canvas_import(filled.table) == {"101": {"12345": "9.45"}, "102": {"12345": "10"}}
    assert filled.places.keys() == {"ada", "Bob@uni.edu"}
    assert [note for note in filled.notes if note.startswith("eve is not in ")]
    assert b"private" not in filled.table


def test_canvas_reads_the_student_of_an_institutions_number(tmp_path: Path) -> None:
    filled = canvas(tmp_path, class_of(make_row("grace_steep", "grace", "steep", {})), column="Week 3 (12345)")
    assert canvas_import(filled.table) == {"103": {"12345": "10"}}


def test_canvas_columns_that_are_called_like_the_exercises_are_filled(tmp_path: Path) -> None:
    rows = (ADA, make_row("ada_zigzag", "ada", "zigzag", OPEN), make_row("ada_asleep", "ada", "asleep", {}))
    text = GRADEBOOK.replace("Week 3", "Steep").replace("Essay", "zigzag")
    filled = canvas(tmp_path, class_of(*rows), text)
    # The open submission keeps its grade from Canvas, because an empty cell would erase it.
    assert canvas_import(filled.table) == {"101": {"12345": "9.45", "12346": "44.00"}}
    assert filled.notes == ["No column has the name of asleep: add the exercise with --exercise."]


def test_the_only_column_of_a_gradebook_needs_no_name(tmp_path: Path) -> None:
    text = "Student;ID;SIS User ID;SIS Login ID;Section;Week 3 (1)\n    Points Possible;;;;;10,50\nAda;101;s1;ada;A;\n"
    filled = canvas(tmp_path, class_of(ADA), text)
    assert canvas_import(filled.table, ";") == {"101": {"1": "9.92"}}


@pytest.mark.parametrize("column", [None, "Week", "Final Grade (7)", "Notes", "Section"])
def test_a_column_that_is_not_clear_is_named_by_the_user(tmp_path: Path, column: str | None) -> None:
    with pytest.raises(UserError, match=r"--column.*The columns are: Week 3 \(12345\), Essay \(12346\)\.$"):
        canvas(tmp_path, class_of(ADA), column=column)


def test_a_maximum_that_is_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"1,000\.00, which is not a number"):
        canvas(tmp_path, class_of(ADA), GRADEBOOK.replace("10.00", '"1,000.00"'), column="Week 3")


def test_nothing_in_a_filled_gradebook_is_computed_by_a_spreadsheet(tmp_path: Path) -> None:
    table = canvas(tmp_path, class_of(BOB), column="Week 3").table
    assert b'"\'=cmd()","102","s2","bob@uni.edu","\'@B","10"' in table


def test_a_row_that_fits_two_students_is_nobodys(tmp_path: Path) -> None:
    text = GRADEBOOK.replace(",s1,ada,", ",grace,ada,")  # her login equals another student's number
    grace = make_row("grace_steep", "grace", "steep", {})
    filled = canvas(tmp_path, class_of(ADA, grace), text, column="Week 3")
    assert canvas_import(filled.table) == {}
    assert [note.split(" matches ")[0] for note in filled.notes] == ["ada", "grace"]


def test_a_roster_may_say_what_a_student_is_called_there(tmp_path: Path) -> None:
    filled = canvas(tmp_path, class_of(STRANGER), column="Week 3", names={"eve": ["GHopper"]})
    assert canvas_import(filled.table) == {"103": {"12345": "10"}}


def test_canvas_feedback_has_the_names_of_its_own_download(tmp_path: Path) -> None:
    late = make_row("lovelaceada_LATE_101_555_ada_steep-1", "ada", "steep", LOST)
    students = class_of(late, BOB)
    filled = canvas(tmp_path, students, column="Week 3")
    [(name, content)] = canvas_files(students, filled, lambda row: f"<p>{row.student}")
    assert canvas_owner(name) == ("101", "555")
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        [member] = tar.getmembers()
        page = tar.extractfile(member)
        assert page is not None
        assert page.read() == b"<p>ada"


# --- Moodle ---

NAMES = {"ada": ["ada@uni.edu"], "grace": ["grace@uni.edu"]}


def test_moodle_gets_grade_and_feedback(tmp_path: Path) -> None:
    grace = make_row("grace_steep", "grace@uni.edu", "steep", changed("fix.minimal", lost, HOSTILE, "=1"))
    filled = moodle(tmp_path, class_of(make_row("a", "ada@uni.edu", "steep", LOST), grace, STRANGER))
    found = moodle_import(filled.table)
    assert found.keys() == {7001, 7002}
    assert found[7001] == (18.9, "Nothing else was changed (2.5 of 8): Big. Be small.")
    assert found[7002][0] == 18.4
    assert "<script" not in found[7002][1]
    assert [note for note in filled.notes if note.startswith("eve is not in ")]
    # The import compares only these two texts.
    assert b'"Participant 7002","Grace_B O\'Hopper"' in filled.table
    assert b'"Monday, 2 March 2026, 9:00 AM"' in filled.table
    assert b'"\'=1+1","-"' in filled.table


def test_a_long_text_of_a_student_stops_nobodys_grade(tmp_path: Path) -> None:
    students = class_of(make_row("a", "ada@uni.edu", "steep", {}))
    assert moodle_import(moodle(tmp_path, students, WORKSHEET.replace("=1+1", "x" * 200_000)).table).keys() == {7001}


def test_moodle_takes_an_open_grade_for_no_row(tmp_path: Path) -> None:
    assert moodle_import(moodle(tmp_path, class_of(GRACE), names=NAMES).table) == {}


def test_moodle_feedback_files_lead_to_their_student(tmp_path: Path) -> None:
    filled = moodle(tmp_path, class_of(ADA, make_row("g", "grace", "steep", {})), names=NAMES)
    files = dict(moodle_files(filled, lambda student: f"<p>{student}"))
    owners = {moodle_owner(path, {7001, 7002, 7003}): content for path, content in files.items()}
    assert owners == {(7001, "feedback.html"): b"<p>ada", (7002, "feedback.html"): b"<p>grace"}


def test_the_exercises_that_count_are_named_and_a_lacking_one_counts_nothing(tmp_path: Path) -> None:
    # Otherwise a student who also hands in another exercise would change the grades of all students.
    students = class_of(ADA, make_row("g", "grace", "steep", {}), make_row("h", "grace", "zigzag", {}))
    with pytest.raises(UserError, match=r"--exercise.*The exercises are: steep, zigzag\.$"):
        moodle(tmp_path, students, names=NAMES)
    with pytest.raises(UserError, match="Nobody handed in huge_lr"):
        moodle(tmp_path, students, names=NAMES, exercises=["huge_lr"])
    both = moodle_import(moodle(tmp_path, students, names=NAMES, exercises=["steep", "zigzag"]).table)
    assert {number: value for number, (value, _) in both.items()} == {7001: 9.45, 7002: 20.0}
    assert both[7002][1] == "steep: You got all points. | zigzag: You got all points."


def test_a_submission_that_is_left_out_leaves_the_grade_open() -> None:
    # Two files of one exercise, neither with the plain name: neither counts, and the grade is not 0.
    twice = [make_row(name, "ada", "zigzag", {}) for name in ("1_ada_zigzag", "2_ada_zigzag")]
    evil = make_row("ada_other", "ada", "other", {}, status="rejected", total=0.0, criteria={})
    students = class_of(ADA, *twice, evil)
    assert grade(students["ada"], ["steep", "zigzag"]) is None
    assert grade(students["ada"], ["steep"]) == 94.5
    assert exercises_of(students) == ["steep"], "a file that is left out adds no column"


# --- grades that are there ---


def test_canvas_keeps_what_no_export_gave(tmp_path: Path) -> None:
    grace = make_row("g_steep", "ghopper", "steep", {})
    text = GRADEBOOK.replace("ghopper,B,,,46.00", "ghopper,B,,EX,46.00")
    column = "Week 3 (12345)"
    filled = canvas(tmp_path, class_of(ADA, BOB, grace), text, column=column, overwrite=False)
    assert canvas_import(filled.table) == {"102": {"12345": "10"}}
    assert filled.given == {column: {"bob@uni.edu": "10"}}
    assert filled.changes == [f"Bob@uni.edu, {column}: nothing -> 10"]
    assert filled.kept == [
        f"ada, {column}: kept 5.00, because no export wrote this. To write 9.45, use --overwrite.",
        f"ghopper, {column}: kept EX. To write 10, first delete EX on the platform.",
    ]
    taken = canvas(tmp_path, class_of(ADA, BOB, grace), text, column=column)
    assert canvas_import(taken.table) == {"101": {"12345": "9.45"}, "102": {"12345": "10"}}
    # A grade from our earlier export may change, and N/A next to a grade stays in its row.
    text = text.replace("5.00,44.00", "5.00,N/A")
    both = {"given": {column: {"ada": "5"}}, "overwrite": False}
    filled = canvas(tmp_path, class_of(ADA), text.replace("Week 3", "steep").replace("Essay", "zigzag"), **both)
    assert canvas_import(filled.table) == {}, "another column is another grade"
    both["given"] = {"steep (12345)": {"ada": "5"}}
    rows = class_of(ADA, make_row("z", "ada", "zigzag", {}))
    filled = canvas(tmp_path, rows, text.replace("Week 3", "steep").replace("Essay", "zigzag"), **both)
    assert canvas_import(filled.table) == {"101": {"12345": "9.45", "12346": "N/A"}}
    assert filled.changes == ["ada, steep (12345): 5.00 -> 9.45"]


def test_moodle_keeps_grades_and_comments_that_no_export_gave(tmp_path: Path) -> None:
    students = class_of(ADA, make_row("g", "grace", "steep", {}))
    filled = moodle(tmp_path, students, names=NAMES, overwrite=False)
    assert moodle_import(filled.table).keys() == {7001}
    (kept,) = filled.kept
    assert kept.startswith("grace, Grade: kept 12.00, because no export wrote this.")
    # Moodle returns our own comment in another form.
    again = WORKSHEET.replace(",Submitted,,20.00", ",Submitted,18.90,20.00").replace(
        "=1+1,-,", "=1+1,-,<p>Nothing else was changed (2.5 of 8):&nbsp;Big. Be small.</p>"
    )
    given = {**filled.given, "Grade": {**filled.given["Grade"], "grace": "12"}}
    filled = moodle(tmp_path, students, again, names=NAMES, overwrite=False, given=given)
    assert moodle_import(filled.table).keys() == {7001}
    assert filled.changes == []
    assert "grace, Feedback comments: kept Old" in filled.kept[0]


# --- files that are no tables ---


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "There is no .*: in Canvas, open Grades"),
        (b"Name,Points\nada,1\n", "lacks the columns ID, Section: in Canvas"),
        (b"", "is not a CSV table"),
        (b'Student,ID,"Sec\n', "is not a CSV table"),
        ("Müller".encode("latin-1"), "not UTF-8"),
    ],
)
def test_another_file_is_refused_with_what_to_do(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "file.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        fill_canvas(class_of(ADA), path)
