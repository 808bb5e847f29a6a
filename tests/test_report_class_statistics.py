"""The statistics of a class: the students' results, the difficulty of each exercise, and its discrimination."""

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.courses import write_course
from helpers.made_up_class import make_row

from grader.cli import cli
from grader.intake.folder import Arrival
from grader.report.class_statistics import items, matrix
from grader.report.pages import render_class_page
from grader.report.write import write_reports
from grader.score.verdict import Scores, SubmissionScore

FIRST = datetime(2026, 10, 27, 12, tzinfo=UTC)
TOTALS = {"a1": (10.0, 30.0, 50.0, 70.0, 90.0), "a2": (20.0, 40.0, 40.0, 80.0, 100.0), "a3": (70.0,) * 5}


def row(exercise: str, number: int, total: float | None, hours: float | None = None, **more: object) -> SubmissionScore:
    moment = None if hours is None else FIRST + timedelta(hours=hours)
    name = f"s{number}"
    made = make_row(f"{name}_{exercise}_{hours}", name, exercise, {}, **more)
    return replace(made, total=total, arrival=Arrival(file="x", submitted_at=moment))


def scored(*more: SubmissionScore) -> Scores:
    rows = [row(name, number, total) for name, totals in TOTALS.items() for number, total in enumerate(totals)]
    return Scores(provenance={}, submissions=(*rows, *more))


def test_difficulty_and_discrimination_follow_their_formulas() -> None:
    one, two, three = items(scored())
    assert (one.exercise, one.graded, one.mean) == ("a1", 5, 50)
    # The standard deviation of 10, 30, ..., 90 is the root of 1000.
    half = 1.96 * (1000 / 5) ** 0.5
    assert one.mean_interval == pytest.approx((50 - half, 50 + half))
    rest = [(20 + 70) / 2, (40 + 70) / 2, (40 + 70) / 2, (80 + 70) / 2, (100 + 70) / 2]
    mean = sum(rest) / 5
    product = sum((own - 50) * (other - mean) for own, other in zip(TOTALS["a1"], rest, strict=True))
    square = sum((other - mean) ** 2 for other in rest)
    assert one.discrimination == pytest.approx(product / (4000 * square) ** 0.5)
    assert one.discrimination is not None and one.discrimination_interval is not None
    low, high = one.discrimination_interval
    assert -1 < low < one.discrimination < high < 1
    assert (three.discrimination, three.mean_interval) == (None, (70, 70)), "equal totals tell nothing"
    assert two.attempts == 1 and two.hours is None


def test_attempts_and_the_time_between_them_are_counted_and_what_does_not_count_has_no_total() -> None:
    again = [row("a1", 0, 99.0, hours, not_counting="another counts") for hours in (1, 4)]
    found = items(scored(*again, row("a1", 0, 99.0, 10, not_counting="another counts")))
    assert found[0].attempts == pytest.approx((5 + 3) / 5)
    assert found[0].hours == 4.5, "the median of 3 and 6 hours"
    assert found[0].mean == 50


def test_the_matrix_says_how_everybody_stands() -> None:
    more = (
        row("a1", 7, None, status="not judged"),
        row("a2", 7, 0.0, status="rejected", criteria={}, reason="No archive."),
        row("a3", 7, None, status="missing", criteria={}),
        row("a1", 8, 60.0),
    )
    columns, lines, sections = matrix(scored(*more), {"s0": ("Zoe <b>", "A"), "s7": ("Sam", "B")})
    assert columns == ["Student", "Name", "Section", "a1", "a2", "a3", "Grade"]
    assert lines[0] == ["s0", "Zoe <b>", "A", "10", "20", "70", "33.3"]
    assert lines[-1][3:] == ["60", *["\N{EM DASH}"] * 2, "20.0"], "what is missing counts 0"
    assert lines[-2] == ["s7", "Sam", "B", "open", "unread", "missing", "\N{EM DASH}"]
    assert sections[0][1:] == ["13", "64.6"]
    page = "".join(render_class_page(scored(*more), people={"s0": ("Zoe <b>", "A")}))
    assert "Zoe &lt;b&gt;" in page and "Zoe <b>" not in page
    assert "<summary>7 students</summary>" in page


def test_the_tables_are_exported(tmp_path: Path) -> None:
    file = write_course(tmp_path, roster="login,name,section\ns0,=1+1,A\n")
    write_reports(scored(), {}, tmp_path / "reports")
    words = ["export", "--format", "csv", "--out", str(tmp_path / "reports"), "--course", str(file)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    folder = tmp_path / "reports" / "export" / "csv"
    assert {path.name for path in folder.iterdir()} == {"grades.csv", "matrix.csv", "items.csv"}
    rows = list(csv.reader(io.StringIO((folder / "matrix.csv").read_text(encoding="utf-8-sig"))))
    assert rows[1] == ["s0", "'=1+1", "A", "10", "20", "70", "33.3"]
    assert len(list(csv.reader(io.StringIO((folder / "items.csv").read_text(encoding="utf-8-sig"))))) == 4
