import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_class import changed, made_up_class, make_row

from grader.reports.gradebook import COLUMNS, cell, csv_bytes, gradebook, text_of_cell
from grader.reports.text import visible
from grader.score import Flag, Scores, open_check


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def book_of(*students: str) -> list[list[str]]:
    rows = tuple(make_row(f"s{i}", student, "huge_lr", {}) for i, student in enumerate(students))
    return rows_of(gradebook(Scores(provenance={}, submissions=rows)))


def test_the_bytes() -> None:
    flags = (Flag(id="same_fix", message='the same as "bob"'),)
    rows = (
        make_row("Smith, Jr._huge_lr", "Smith, Jr.", "huge_lr", {}, flags=flags),
        make_row("=1+1_huge_lr", "=1+1", "huge_lr", changed("fix.minimal", open_check, "?")),
    )
    assert gradebook(Scores(provenance={}, submissions=rows)) == (
        b"\xef\xbb\xbf"
        b"student,recipe,submission,status,total,reproducibility,diagnostics,fix,explanation,flags\r\n"
        b'"Smith, Jr.",huge_lr,"Smith, Jr._huge_lr",graded,100,35,30,20,15,"same_fix: the same as ""bob"""\r\n'
        b"'=1+1,huge_lr,'=1+1_huge_lr,not judged,,35,30,,15,\r\n"
    )


def test_one_row_a_submission_and_nothing_open_is_a_zero() -> None:
    scores, _, _ = made_up_class(40)
    header, *rows = rows_of(gradebook(scores))
    assert tuple(header) == COLUMNS
    assert len(rows) == 40
    for row, score in zip(rows, scores.submissions, strict=True):
        assert len(row) == len(COLUMNS)
        assert row[4] == ("" if score.total is None else f"{score.total:g}")
        if score.status == "rejected":
            assert row[3:9] == ["rejected", "0", "", "", "", ""]


@pytest.mark.parametrize(
    "name",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        '=HYPERLINK("http://x","y")',
        "\uff1d1+1",
        "'=1",
        "''@a",
        '=cmd|"/c calc"!A0',
    ],
)
def test_a_formula_is_text_and_its_name_can_be_had_back(name: str) -> None:
    _, [student, *_] = book_of(name)
    assert student == f"'{name}"
    assert text_of_cell(student) == name


@pytest.mark.parametrize(
    "name", ["Smith, Jr.", 'Robert "Bobby" Tables', "O'Neill", "'quoted'", "Łukasz", "李", "a;b", ""]
)
def test_any_other_name_stands_as_it_is(name: str) -> None:
    assert book_of(name)[1][0] == name
    assert text_of_cell(name) == name


def test_control_characters_are_spelled_out() -> None:
    names = [row[0] for row in book_of("\t=1", "\r=1", "a\x00b", "\x1b[2J")[1:]]
    assert names == ["'\t=1", "<U+000D>=1", "a<U+0000>b", "<U+001B>[2J"]


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=2), min_size=1
    )
)
def test_any_cells_come_back_from_a_reader(rows: list[list[str]]) -> None:
    # An empty line of one empty cell is no row to a reader, hence two cells at least.
    assert rows_of(csv_bytes(rows)) == rows or any("\ufeff" in text for row in rows for text in row)


@given(st.text(st.sampled_from("'=+-@ab\t\n")))
def test_the_apostrophe_can_always_be_undone(text: str) -> None:
    assert text_of_cell(cell(text)) == visible(text)
    assert cell(text)[:1] not in ("=", "+", "-", "@", "\t", "\n")
