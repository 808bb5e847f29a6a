import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_class import changed, made_up_class, make_row

from grader.report.gradebook import COLUMNS, cell, csv_bytes, gradebook
from grader.report.text import visible
from grader.score.verdict import CRITERIA, Flag, Scores, open_check


def rows_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def book_of(*students: str) -> list[list[str]]:
    rows = tuple(make_row(f"s{i}", student, "huge_lr", {}) for i, student in enumerate(students))
    return rows_of(gradebook(Scores(provenance={}, submissions=rows)))


def text_of(content: str) -> str:
    """Undo `cell`: take one apostrophe away before each formula."""
    return re.sub("(^|[;\t\n])'(?=['\" ]*[=+@\uff1d-])", r"\1", content)


def cells_of_any_reader(data: bytes) -> list[str]:
    """Return what spreadsheets may take for cells: split at other signs, with quotes understood or not."""
    text = data.decode("utf-8-sig")
    read = [csv.reader(io.StringIO(text, newline=""), delimiter=one) for one in ",;\t"]
    naive = [line.replace('"', "") for line in re.split("[;\t\r\n]", text)]
    return [content.strip() for rows in read for row in rows for content in row] + [
        one.strip() for one in naive
    ]


def test_the_bytes() -> None:
    flags = (Flag(id="same_fix", message='the same as "bob"'), Flag(id="log_edited", message="line 3"))
    rows = (
        make_row("Smith, Jr._huge_lr", "Smith, Jr.", "huge_lr", {}, flags=flags),
        make_row("=1+1_huge_lr", "=1+1", "huge_lr", changed("fix.minimal", open_check, "?")),
    )
    assert gradebook(Scores(provenance={}, submissions=rows)) == (
        b"\xef\xbb\xbf"
        b'"student","recipe","submission","status","total",'
        b'"reproducibility","diagnostics","fix","explanation","flags"\r\n'
        b'"Smith, Jr.","huge_lr","Smith, Jr._huge_lr","graded","100","35","30","20","15",'
        b'"same_fix: the same as ""bob"" | log_edited: line 3"\r\n'
        b'"\'=1+1","huge_lr","\'=1+1_huge_lr","not judged","","35","30","","15",""\r\n'
    )


def test_one_row_a_submission_and_nothing_open_is_a_zero() -> None:
    scores, _, _ = made_up_class(40)
    header, *rows = rows_of(gradebook(scores))
    assert tuple(header) == (*COLUMNS, *CRITERIA, "flags")
    assert len(rows) == 40
    for row, score in zip(rows, scores.submissions, strict=True):
        assert len(row) == len(header)
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
    assert text_of(student) == name


@pytest.mark.parametrize(
    "name",
    [
        "x;=cmd|'/c calc'!A0;",
        "x;  =1",
        "x\t=1",
        "x\n=1",
        'x;"=1"',
        ";;+1;-1",
        "\t\t=1",
        " =1",
        "a;\u3000\uff1d1",
    ],
)
def test_no_reader_finds_a_formula_inside_a_cell(name: str) -> None:
    rows = (make_row("s", "s", "huge_lr", {}), make_row("t", name, name, {}))
    data = gradebook(Scores(provenance={}, submissions=rows))
    found = cells_of_any_reader(data)
    assert not [one for one in found if one.startswith(("=", "+", "-", "@", "\uff1d"))]
    # The test itself can see one: without the apostrophes there is a formula.
    plain = cells_of_any_reader(csv_bytes([["s", name]]))
    assert [one for one in plain if one.startswith(("=", "+", "-", "@", "\uff1d"))]


@pytest.mark.parametrize(
    "name", ["Smith, Jr.", 'Robert "Bobby" Tables', "O'Neill", "'quoted'", "Łukasz", "李", "a;b", ""]
)
def test_any_other_name_stands_as_it_is(name: str) -> None:
    assert book_of(name)[1][0] == name


def test_control_characters_are_spelled_out() -> None:
    names = [row[0] for row in book_of("\t=1", "\r=1", "a\x00b", "\x1b[2J")[1:]]
    assert names == ["\t'=1", "<U+000D>=1", "a<U+0000>b", "<U+001B>[2J"]


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=2), min_size=1
    )
)
def test_any_cells_come_back_from_a_reader(rows: list[list[str]]) -> None:
    # An empty line of one empty cell is no row to a reader, hence two cells at least.
    assert rows_of(csv_bytes(rows)) == rows or any("\ufeff" in text for row in rows for text in row)


ODD = st.text(st.sampled_from("'=+-@ab\t\n;\" "))


@given(ODD)
def test_the_apostrophes_can_always_be_undone(text: str) -> None:
    assert text_of(cell(text)) == visible(text)


@given(ODD, ODD)
def test_no_text_makes_a_formula_for_any_reader(first: str, second: str) -> None:
    found = cells_of_any_reader(csv_bytes([["s", cell(first), cell(second)]]))
    assert not [one for one in found if one.startswith(("=", "+", "-", "@"))]
