import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.made_up_class import HOSTILE, changed, make_row, scores_of
from hypothesis import example, given
from hypothesis import strategies as st

from grader.cli import cli
from grader.report.gradebook import (
    GradebookPlatform,
    csv_bytes,
    export,
    grade,
    gradebook,
    gradebook_json,
    not_exported,
    students_of,
)
from grader.score.scores_file import SCORES, scores_json
from grader.score.verdict import Flag, Lateness, RuleTotal, SubmissionScore, lost, open_item
from harness.submission.document import visible


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def text_of(content: str) -> str:
    """Undo `cell`: remove one apostrophe before each formula."""
    return re.sub("(^|[;\t\n])'(?=['\" \u3000]*[=+@\uff1d-])", r"\1", content)


def formulas_in(data: bytes) -> list[str]:
    """Return the formulas that spreadsheets may find: split at other separators, with or without support for quotes."""
    text = data.decode("utf-8-sig")
    read = [csv.reader(io.StringIO(text, newline=""), delimiter=one) for one in ",;\t"]
    cells = [content.strip() for rows in read for row in rows for content in row]
    cells += [line.replace('"', "").strip() for line in re.split("[;\t\r\n]", text)]
    return [one for one in cells if one.startswith(("=", "+", "-", "@", "\uff1d"))]


def test_the_bytes() -> None:
    flags = (Flag(id="same_fix", message='the same as "bob"'), Flag(id="log_edited", message="line 3"))
    scores = scores_of(
        make_row("Smith, Jr._steep", "Smith, Jr.", "steep", {}, flags=flags),
        make_row("=1+1_steep", "=1+1", "steep", changed("fix.minimal", open_item, "?")),
        rejected("eve", "steep"),
    )
    assert gradebook(scores) == (
        b"\xef\xbb\xbf"
        b'"student","recipe","submission","status","total",'
        b'"reproducibility","diagnostics","fix","explanation","limit","lateness","decided","flags"\r\n'
        b'"Smith, Jr.","steep","Smith, Jr._steep","graded","100","35","30","20","15","","","",'
        b'"same_fix: the same as ""bob"" | log_edited: line 3"\r\n'
        b'"\'=1+1","steep","\'=1+1_steep","not judged","","35","30","","15","","","",""\r\n'
        b'"eve","steep","eve_steep","rejected","0","","","","","","","",""\r\n'
    )


ODD = st.text(st.sampled_from("'=+-@ab\t\n;\" \uff1d\u3000"))


@given(ODD, ODD)
@example("=1+1", "x;=cmd|'/c calc'!A0;")
def test_no_text_makes_a_formula_and_the_apostrophes_can_be_undone(first: str, second: str) -> None:
    data = gradebook(scores_of(make_row(second, first, "steep", {})))
    assert not formulas_in(data)
    assert formulas_in(csv_bytes([["s", "x;=1"]])), "the test itself can see one"
    _, [student, _, submission, *_] = rows_of(data)
    assert (text_of(student), text_of(submission)) == (visible(first), visible(second))


# --- exports ---


def rejected(student: str, recipe: str) -> SubmissionScore:
    more = {"status": "rejected", "reason": "Not an archive.", "total": 0.0, "criteria": {}}
    return make_row(f"{student}_{recipe}", student, recipe, {}, **more)


def table(data: bytes) -> list[list[str]]:
    assert not data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


CLASS = scores_of(
    make_row("ada_steep", "ada", "steep", changed("fix.minimal", lost, "Big.", "Be small.", points=2.5)),
    make_row("ada_zigzag", "ada", "zigzag", {}),
    make_row("bob_steep", "bob", "steep", changed("fix.correct", open_item, "Who knows?")),
    rejected("eve", "steep"),
)


PLATFORMS = pytest.mark.parametrize("platform", ["canvas", "moodle"])


def test_canvas_has_a_row_a_student_and_a_column_a_recipe() -> None:
    assert table(export(CLASS, "canvas")) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "steep", "zigzag"],
        ["    Points Possible", "", "", "", "", "100", "100"],
        ["ada", "", "", "ada", "", "94.5", "100"],
        ["bob", "", "", "bob", "", "", ""],
    ]


def test_moodle_marks_what_is_open_with_a_dash() -> None:
    header, ada, bob = table(export(CLASS, "moodle"))
    assert header == ["username", "steep", "steep feedback", "zigzag", "zigzag feedback"]
    big = "Nothing else was changed (2.5 of 8): Big. Be small."
    assert ada == ["ada", "94.5", big, "100", "You got all points."]
    assert bob == ["bob", "-", "The cause is gone (— of 12): Who knows?", "-", ""]


def test_the_table_says_what_lateness_cost_and_what_was_decided() -> None:
    late = make_row("ada_steep", "ada", "steep", {}, total=80.0, late=Lateness(days=2, cost=20.0))
    rule = RuleTotal(status="graded", total=80.0, reason="")
    decided = make_row("bob_steep", "bob", "steep", {}, total=40.0, rule=rule, reason="Agreed on.")
    scores = scores_of(late, decided)
    _, ada, bob = rows_of(gradebook(scores))
    found = json.loads(gradebook_json(scores))
    assert (ada[4], ada[-3:-1], bob[-3:-1]) == ("80", ["20", ""], ["", "Agreed on."])
    assert [(row["lateness"], row["decided"]) for row in found] == [(20.0, ""), (None, "Agreed on.")]


def missing(student: str, recipe: str) -> SubmissionScore:
    return make_row(f"{student}_{recipe} (missing)", student, recipe, {}, status="missing", total=None, criteria={})


def test_who_handed_in_nothing_has_no_grade_and_one_of_two_counts_half() -> None:
    one, other = missing("ada", "steep"), missing("ada", "zigzag")
    found = students_of(scores_of(one, other, make_row("bob_steep", "bob", "steep", {}), missing("bob", "zigzag")))
    assert grade(found["ada"], ["steep", "zigzag"]) is None
    assert grade(found["bob"], ["steep", "zigzag"]) == 50.0


@pytest.mark.parametrize("recipe", ["zigzag", ""])
def test_a_grade_waits_while_a_file_of_the_student_is_unreadable_or_disputed(recipe: str) -> None:
    rows = [make_row("ada_steep", "ada", "steep", {}), missing("ada", "zigzag")]
    unreadable = replace(rejected("ada", recipe), submission="typed")
    disputed = make_row("file", "ada", recipe or "zigzag", {}, not_counting="It may be another student's.")
    assert grade(students_of(scores_of(*rows))["ada"], ["steep", "zigzag"]) == 50.0
    for file in (unreadable, disputed):
        assert grade(students_of(scores_of(*rows, file))["ada"], ["steep", "zigzag"]) is None
        assert grade(students_of(scores_of(*rows, file))["ada"], ["steep"]) == 100.0


@PLATFORMS
def test_a_rejected_archive_has_no_row_and_no_column_whatever_it_says(platform: GradebookPlatform) -> None:
    # An empty column of that name would erase the grades of another assignment, and a 0 next to "bob" would become his
    # grade. If Moodle does not know a name, it refuses the whole file.
    evil = replace(rejected("bob", "steep"), submission="evil")
    good = [make_row("ada_steep", "ada", "steep", {}), make_row("bob_steep", "bob", "steep", {})]
    scores = scores_of(*good, evil, rejected("eve", "Midterm (17)"))
    assert export(scores, platform) == export(scores_of(*good), platform)


def test_a_rejected_archive_that_the_instructor_gave_a_total_is_exported() -> None:
    row = replace(rejected("eve", "steep"), status="graded", total=40.0)
    assert table(export(scores_of(row), "canvas"))[-1] == ["eve", "", "", "eve", "", "40"]


def test_the_command_writes_the_table_and_names_who_was_left_out(tmp_path: Path) -> None:
    odd = rejected("e\x1b[2J", "steep")
    (tmp_path / SCORES).write_bytes(b"".join(scores_json(scores_of(*CLASS.submissions, odd))))
    done = CliRunner().invoke(cli, ["export", "--format", "moodle", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert (tmp_path / "export" / "moodle" / "moodle.csv").read_bytes() == export(CLASS, "moodle")
    assert "Submissions left out of this export: 2." in done.stderr
    assert "  eve_steep: Not an archive.\n  e<U+001B>[2J_steep: Not an archive.\n" in done.stderr


def test_no_student_can_pose_as_the_row_of_the_highest_marks() -> None:
    scores = scores_of(make_row("x_steep", "  Points Possible", "steep", {}))
    data = export(scores, "canvas")
    assert [row[0] for row in table(data) if "Points Possible" in row[0]] == ["    Points Possible"]


def test_moodle_feedback_is_text_where_it_is_shown_as_html() -> None:
    scores = scores_of(make_row("x_steep", "x", "steep", changed("fix.minimal", lost, HOSTILE, "a < b")))
    feedback = table(export(scores, "moodle"))[1][2]
    assert "<" not in feedback
    assert "&lt;script&gt;" in feedback
    assert "a &lt; b" in feedback
    assert feedback.isprintable()


@PLATFORMS
@pytest.mark.parametrize("student", ["Ada", " ada", "\uff41\uff44\uff41", "ADA\u00a0"])
def test_what_a_platform_takes_for_one_is_left_out_and_named(platform: GradebookPlatform, student: str) -> None:
    bob = make_row("bob_steep", "bob", "steep", {})
    scores = scores_of(make_row("one", "ada", "steep", {}), make_row("other", student, "zigzag", {}), bob)
    assert export(scores, platform) == export(scores_of(bob), platform)
    assert not_exported(scores).keys() == {"one", "other"}
    assert "would treat" in not_exported(scores)["one"]


@PLATFORMS
def test_a_second_tarball_takes_nobodys_place(platform: GradebookPlatform) -> None:
    # Of two tarballs, the tarball with the plain name counts.
    second = make_row("ada_steep-1", "ada", "steep", {}, total=1.0)
    scores = scores_of(*CLASS.submissions, second)
    assert export(scores, platform) == export(CLASS, platform)
    kept, before = ([{**row, "flags": []} for row in json.loads(gradebook_json(one))] for one in (scores, CLASS))
    assert kept == before
    assert "ada_steep counts" in not_exported(scores)["ada_steep-1"]
