"""The identity of students: another student's file never changes anyone's name, place or row."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.made_up_class import make_row, scores_of
from hypothesis import given
from hypothesis import strategies as st

from grader.cli import cli
from grader.course.decisions import Decision, apply_decisions, load_decisions
from grader.course.review import decide, find_open_items
from grader.intake.folder import read_folder
from grader.report.gradebook import export
from grader.report.pages import render_submission
from grader.score.identity import compare_rows, find_left_out, identify, is_invisible, name_student
from grader.score.scores_file import SCORES, read_scores, scores_json
from grader.score.scoring import score_as_unread
from grader.score.verdict import SubmissionScore
from harness.written.exercise import exercise_ids

EXERCISES = exercise_ids()


def ids(name: str, student: str | None = "ada", exercise: str | None = "huge_lr") -> list[str]:
    return [flag.id for flag in identify(name, student, exercise, EXERCISES)[2]]


def row_of(name: str, student: str | None = None, exercise: str = "huge_lr") -> SubmissionScore:
    """Return the row of a graded submission with this manifest, or of an archive that cannot be read."""
    if student is None:
        return name_student(score_as_unread(name, "No archive.", rejected=True).row, EXERCISES)
    found, exercise, flags = identify(name, student, exercise, EXERCISES)
    return make_row(name, found, exercise, {}, flags=flags)


def flags_of(*rows: SubmissionScore) -> dict[str, list[str]]:
    return {row.submission: [flag.id for flag in row.flags] for row in compare_rows(rows)}


@pytest.mark.parametrize(
    "name",
    [
        "ada_huge_lr", "ada_huge_lr.1", "ada_huge_lr (2)", "ada_huge_lr-3", "lovelaceada_123_456_ada_huge_lr-1",
        "lovelaceada_LATE_123_456_ada_huge_lr", "Ada Lovelace_77_assignsubmission_file_ada_huge_lr", "Zoë ada_huge_lr",
    ],
)  # fmt: skip
def test_a_platform_may_put_its_words_around_a_name(name: str) -> None:
    assert identify(name, "ada", "huge_lr", EXERCISES) == ("ada", "huge_lr", ())


@pytest.mark.parametrize(
    ("name", "student", "row"),
    [
        ("bob_huge_lr", "ada", "bob"),
        ("bada_huge_lr", "ada", "bada"),
        ("de_ada_huge_lr", "ada", "de_ada"),
        ("ada_huge_lr2", "ada", "ada_huge_lr2"),
        ("Ada_huge_lr", "ada", "Ada"),
        ("ada\u0301_huge_lr", "ada", "ada\u0301"),
        ("ada_loss_sum", "ada", "ada"),
        ("x", "ada", "x"),
    ],
)
def test_a_file_named_for_another_keeps_its_own_name_and_counts_nowhere(name: str, student: str, row: str) -> None:
    assert identify(name, student, "huge_lr", EXERCISES)[0] == row
    assert "other name" in ids(name, student)
    ada, other = row_of("ada_huge_lr", "ada"), row_of(name, student)
    assert find_left_out(compare_rows([ada, other])).keys() == {name}
    assert export(scores_of(ada, other), "canvas") == export(scores_of(ada), "canvas")


def test_names_are_compared_after_normalization() -> None:
    assert ids("zoe\u0308_huge_lr", "zo\u00eb") == []
    twice = row_of("zoe\u0308_huge_lr", "zo\u00eb"), row_of("zo\u00eb_huge_lr", "zo\u00eb")
    assert find_left_out(compare_rows(twice)).keys() == {row.submission for row in twice}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a\u200bda", "invisible characters"), ("\u202eada", "invisible characters"), ("\\xff", "not UTF-8"),
        ("\uff41da", "unusual forms"), ("\u0430da", "several alphabets"),
    ],
)  # fmt: skip
def test_an_odd_name_is_flagged_in_a_rejected_row_too(name: str, words: str) -> None:
    [flag] = row_of(f"{name}_huge_lr").flags
    assert flag.id == "odd name" and words in flag.message and flag.message.isprintable()


# Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 14 to 16.
IGNORABLE = [
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
]  # fmt: skip
BLANK = "\u2800\u3000\u00a0\u1680\u2003\U00016fe4\U0001d159"


def test_every_character_that_cannot_be_seen_is_flagged_on_the_row_and_on_the_one_it_looks_like() -> None:
    chars = [chr(code) for first, last in IGNORABLE for code in range(first, last + 1)]
    for char in [*chars, *BLANK]:
        name = f"ad{char}a_huge_lr"
        assert is_invisible(char), hex(ord(char))
        assert "odd name" in ids(name, None, None), hex(ord(char))
        found = flags_of(row_of("ada_huge_lr", "ada"), row_of(name))
        assert all("look alike" in flags for flags in found.values()), hex(ord(char))
    assert not any(map(is_invisible, "aé文ㅎक्षि👍 -_'\u0301"))


def test_the_message_about_an_unseen_letter_shows_its_code() -> None:
    [flag] = row_of("ad\u3164a_huge_lr").flags
    assert flag.message == r"ad\u3164a_huge_lr has invisible characters."


def test_an_honest_name_in_any_script_is_not_odd() -> None:
    for name in ("Анна_1_2_anna", "李明", "O\u2019Brien, Jr.", "Zoë", "Ωmega".replace("Ω", "O")):
        assert ids(f"{name}_huge_lr", None, None) == []


@pytest.mark.parametrize("other", ["Ada", "\u0430da", "\uff41da", "a\u0064a ", "adá", "ad\u200ba", "\u0430d\u0430"])
def test_names_that_look_alike_are_flagged_on_both_rows(other: str) -> None:
    found = flags_of(row_of("ada_huge_lr", "ada"), row_of(f"{other}_loss_sum"), row_of("bob_huge_lr", "bob"))
    assert ["look alike" in flags for flags in found.values()] == [True, True, False]


def test_one_student_twice_is_flagged_on_both_rows_and_the_plain_name_counts() -> None:
    plain, second = row_of("ada_huge_lr", "ada"), row_of("x_1_ada_huge_lr", "ada")
    assert flags_of(plain, second) == {row.submission: ["same student"] for row in (plain, second)}
    assert find_left_out(compare_rows([plain, second])).keys() == {second.submission}
    third = row_of("ada_huge_lr-2", "ada")
    assert find_left_out(compare_rows([second, third])).keys() == {second.submission, third.submission}


def test_no_page_shows_who_else_is_in_the_class() -> None:
    ada = row_of("ada_huge_lr", "ada")
    flagged, *_ = compare_rows([ada, row_of("Ada_loss_sum", "Ada", "loss_sum"), row_of("x_1_ada_huge_lr", "ada")])
    assert len(flagged.flags) == 2
    assert render_submission(flagged, None) == render_submission(ada, None)
    assert compare_rows([flagged]) == (ada,), "flags are made anew for each class"


def test_the_instructor_decides_whose_it_is() -> None:
    scores = scores_of(row_of("ada_huge_lr", "ada"), row_of("bob_huge_lr", "ada"))
    decision = Decision(submission="bob_huge_lr", student="ada", comment="He wrote from her account.")
    _, bob = rows = apply_decisions(scores, [decision]).submissions
    assert (bob.student, [flag.id for flag in bob.flags]) == ("ada", ["decided name"])
    assert find_left_out(compare_rows(rows)).keys() == {"ada_huge_lr"}


def test_files_that_differ_in_one_odd_byte_are_different_submissions(tmp_path: Path) -> None:
    names = (b"\xff", b"\\xff", b"\\\\xff", b"\xfe", "\u00ff".encode(), b"")
    for name in names:
        (tmp_path / os.fsdecode(name + b".tar.gz")).touch()
    assert {file.name for file in read_folder(tmp_path).files} == {
        "\\xff",
        "\\\\xff",
        "\\" * 4 + "xff",
        "\\xfe",
        "\u00ff",
        "",
    }


@given(st.lists(st.text(st.characters(codec=None), max_size=8), min_size=1, max_size=4), st.text(max_size=5))
def test_no_name_stops_a_class(names: list[str], student: str) -> None:
    rows = [row_of(f"{name}_huge_lr", student) for name in names] + [row_of(name) for name in names]
    once = compare_rows([*{row.submission: row for row in rows}.values()])
    assert (
        {row.submission for row in compare_rows([*once])}
        == {row.submission for row in once}
        >= find_left_out(compare_rows(once)).keys()
    )


@pytest.mark.parametrize("name", ["", "\\xff", "a\nb", "-x", "..", "\u202e"])
def test_any_submission_can_be_reviewed_and_exported(tmp_path: Path, name: str) -> None:
    more: dict[str, object] = {"status": "not judged", "total": None, "reason": "?", "criteria": {}}
    (tmp_path / "reports").mkdir()
    row = make_row(name, name, "huge_lr", {}, **more)
    (tmp_path / "reports" / SCORES).write_bytes(b"".join(scores_json(scores_of(row))))
    out = tmp_path / "reports"
    [item] = find_open_items([row])
    decide(out, item, "40", "by hand", "Prof. Ada")
    assert find_open_items(apply_decisions(read_scores(out), load_decisions(out)).submissions) == []
    done = CliRunner().invoke(cli, ["export", "--format", "moodle", "--out", str(out)])
    assert done.exit_code == 0, done.output
