import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up_class import HOSTILE, changed, made_up_class, make_row

from grader.cli import cli
from grader.report.export_formats import FORMATS, Format
from grader.report.exports import export, left_out
from grader.report.gradebook import gradebook
from grader.report.scores_file import SCORES, scores_bytes
from grader.score.verdict import Scores, SubmissionScore, lost, open_check
from harness.errors import UserError


def scores_of(*rows: SubmissionScore) -> Scores:
    return Scores(provenance={}, submissions=rows)


def rejected(student: str, recipe: str) -> SubmissionScore:
    return SubmissionScore(
        submission=f"{student}_{recipe}",
        student=student,
        recipe=recipe,
        status="rejected",
        reason="Not an archive.",
        total=0.0,
        criteria={},
        provenance={},
    )


def table(data: bytes) -> list[list[str]]:
    assert not data.startswith(b"\xef\xbb\xbf")
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


CLASS = scores_of(
    make_row("ada_huge_lr", "ada", "huge_lr", changed("fix.minimal", lost, "Big.", "Be small.", points=2.5)),
    make_row("ada_loss_sum", "ada", "loss_sum", {}),
    make_row("bob_huge_lr", "bob", "huge_lr", changed("fix.correct", open_check, "Who knows?")),
    rejected("eve", "huge_lr"),
)


def test_csv_is_the_gradebook() -> None:
    assert export(CLASS, "csv") == [("gradebook.csv", gradebook(CLASS))]


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_takes_any_class_and_gives_the_same_bytes(format: Format) -> None:
    scores, _, _ = made_up_class(60)
    files = export(scores, format)
    assert files == export(scores, format)
    assert files
    assert export(scores_of(), format) is not None


def test_canvas_has_a_row_a_student_and_a_column_a_recipe() -> None:
    [(name, data)] = export(CLASS, "canvas")
    assert name == "canvas.csv"
    assert table(data) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "huge_lr", "loss_sum"],
        ["    Points Possible", "", "", "", "", "100", "100"],
        ["ada", "", "", "ada", "", "94.5", "100"],
        ["bob", "", "", "bob", "", "", ""],
    ]


def test_moodle_marks_what_is_open_with_a_dash() -> None:
    [(name, data)] = export(CLASS, "moodle")
    header, ada, bob = table(data)
    assert name == "moodle.csv"
    assert header == ["username", "huge_lr", "huge_lr feedback", "loss_sum", "loss_sum feedback"]
    assert ada == [
        "ada",
        "94.5",
        "Nothing else was changed (2.5 of 8): Big. Be small.",
        "100",
        "Every check passed.",
    ]
    assert bob == ["bob", "-", "The cause is gone (— of 12): Who knows?", "-", ""]


@pytest.mark.parametrize("format", ["canvas", "moodle"])
def test_a_rejected_archive_has_no_row_and_no_column_whatever_it_says(format: Format) -> None:
    # An empty column of that name would wipe the grades of another assignment; a 0 beside "bob" would be his; and
    # a name that Moodle does not know makes it refuse the whole file.
    evil = rejected("bob", "huge_lr").model_copy(update={"submission": "evil"})
    good = [make_row("ada_huge_lr", "ada", "huge_lr", {}), make_row("bob_huge_lr", "bob", "huge_lr", {})]
    scores = scores_of(*good, evil, rejected("eve", "Midterm (17)"))
    assert export(scores, format) == export(scores_of(*good), format)
    assert [row.submission for row in left_out(scores, format)] == ["evil", "eve_Midterm (17)"]


@pytest.mark.parametrize("format", ["csv", "gradescope"])
def test_a_rejected_archive_is_in_the_other_exports(format: Format) -> None:
    assert left_out(CLASS, format) == []
    assert any(b"Not an archive." in data or b"rejected" in data for _, data in export(CLASS, format))


def test_a_rejected_archive_that_the_instructor_gave_a_total_is_exported() -> None:
    row = rejected("eve", "huge_lr").model_copy(update={"status": "graded", "total": 40.0})
    assert left_out(scores_of(row), "canvas") == []
    [(_, data)] = export(scores_of(row), "canvas")
    assert table(data)[-1] == ["eve", "", "", "eve", "", "40"]


def test_the_command_names_who_was_left_out(tmp_path: Path) -> None:
    odd = rejected("e\x1b[2J", "huge_lr")
    (tmp_path / SCORES).write_bytes(scores_bytes(scores_of(*CLASS.submissions, odd)))
    done = CliRunner().invoke(cli, ["export", "--format", "moodle", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert "2 rejected, and not in it" in done.output
    assert "  eve_huge_lr: Not an archive.\n  e<U+001B>[2J_huge_lr: Not an archive.\n" in done.output
    assert (
        "rejected"
        not in CliRunner().invoke(cli, ["export", "--format", "csv", "--out", str(tmp_path)]).output
    )


def test_no_student_can_pose_as_the_row_of_the_highest_marks() -> None:
    scores = scores_of(make_row("x_huge_lr", "  Points Possible", "huge_lr", {}))
    [(_, data)] = export(scores, "canvas")
    assert [row[0] for row in table(data) if "Points Possible" in row[0]] == ["    Points Possible"]


@pytest.mark.parametrize("format", ["canvas", "moodle"])
def test_formulas_are_neutralised_there_too(format: Format) -> None:
    scores = scores_of(make_row("x_huge_lr", "=1+1", "huge_lr", changed("fix.minimal", lost, "=2+2", "-x")))
    [(_, data)] = export(scores, format)
    assert not [one for row in table(data) for one in row if one.startswith(("=", "+", "@"))]
    assert table(data)[-1][0] == "'=1+1"


def test_moodle_feedback_is_text_where_it_is_shown_as_html() -> None:
    scores = scores_of(make_row("x_huge_lr", "x", "huge_lr", changed("fix.minimal", lost, HOSTILE, "a < b")))
    [(_, data)] = export(scores, "moodle")
    feedback = table(data)[1][2]
    assert "<" not in feedback
    assert "&lt;script&gt;" in feedback
    assert "a &lt; b" in feedback
    assert feedback.isprintable()


@pytest.mark.parametrize("format", ["canvas", "moodle"])
def test_one_student_with_one_recipe_twice_is_not_decided_silently(format: Format) -> None:
    scores = scores_of(
        make_row("ada_huge_lr", "ada", "huge_lr", {}), make_row("ada_again", "ada", "huge_lr", {})
    )
    with pytest.raises(UserError, match=r"ada handed in huge_lr twice, ada_again and ada_huge_lr: keep one"):
        export(scores, format)


@pytest.mark.parametrize("format", ["canvas", "moodle"])
@pytest.mark.parametrize("other", ["Ada", "ada ", " ada", "\uff41\uff44\uff41", "ADA\u00a0"])
@pytest.mark.parametrize("recipe", ["huge_lr", "loss_sum"])
def test_names_that_a_platform_takes_for_one_are_not_decided_silently(
    format: Format, other: str, recipe: str
) -> None:
    scores = scores_of(
        make_row("ada_huge_lr", "ada", "huge_lr", {}), make_row("mallory_huge_lr", other, recipe, {})
    )
    with pytest.raises(UserError, match="a platform takes for one"):
        export(scores, format)


@pytest.mark.parametrize("format", ["canvas", "moodle"])
def test_names_that_only_look_alike_are_two(format: Format) -> None:
    scores = scores_of(
        make_row("ada_huge_lr", "ada", "huge_lr", {}), make_row("b_huge_lr", "ada l", "huge_lr", {}),
        make_row("c_huge_lr", "\u0430da", "huge_lr", {}),
    )  # fmt: skip
    [(_, data)] = export(scores, format)
    assert len([row for row in table(data) if any("da" in one for one in row)]) == 3


def test_gradescope_gets_one_file_for_each_total() -> None:
    files = dict(export(CLASS, "gradescope"))
    assert list(files) == [
        "ada_huge_lr.results.json",
        "ada_loss_sum.results.json",
        "eve_huge_lr.results.json",
    ]
    result = json.loads(files["ada_huge_lr.results.json"])
    assert result["score"] == 94.5
    assert len(result["tests"]) == 17
    assert sum(test["score"] for test in result["tests"]) == 94.5
    assert sum(test["max_score"] for test in result["tests"]) == 100
    assert [test for test in result["tests"] if test["status"] == "failed"] == [
        {
            "name": "fix: Nothing else was changed",
            "name_format": "text",
            "number": "3.2",
            "score": 2.5,
            "max_score": 8.0,
            "status": "failed",
            "output": "Big. Be small.",
            "output_format": "text",
            "visibility": "after_published",
        }
    ]
    assert json.loads(files["eve_huge_lr.results.json"]) == {
        "score": 0.0,
        "output": "Not an archive.",
        "output_format": "text",
        "visibility": "after_published",
        "stdout_visibility": "hidden",
        "tests": [],
    }


def test_a_file_of_gradescope_has_a_safe_name() -> None:
    files = export(scores_of(make_row("../../x", "x", "huge_lr", {})), "gradescope")
    assert "/" not in files[0][0]
    assert ".." not in files[0][0]
