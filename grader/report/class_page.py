"""`index.html`: the whole class on one page; a pure view of the scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.report.class_figures import Bar, distribution, lost_checks, maxima, means, middle, totals
from grader.report.page_names import page_stems
from grader.report.page_template import render
from grader.report.text import clipped
from grader.score.verdict import Check, Criterion, Scores, SubmissionScore, criteria_in

_PLOT_HEIGHT = 200
_BAR_WIDTH = 40
_NAME_LIMIT = 80  # characters of a recipe's name; the filter compares what is shown


@dataclass(frozen=True)
class Row:
    """A submission in the table: its page, and the points of each criterion, None where open or not there."""

    score: SubmissionScore
    recipe: str
    page: str
    criteria: tuple[float | None, ...]


@dataclass(frozen=True)
class OpenCase:
    """A submission that waits for the instructor, and each reason why."""

    row: Row
    reasons: tuple[tuple[str, str], ...]  # (where, why)


@dataclass(frozen=True)
class DrawnBar:
    """A bar of the distribution with its place in the drawing."""

    bar: Bar
    x: int
    y: float
    height: float


def render_class_page(scores: Scores, recipes: Mapping[str, str]) -> str:
    """Return the page. `recipes` gives the title of each recipe, which its filter shows beside the name."""
    stems = page_stems(row.submission for row in scores.submissions)
    criteria = criteria_in(scores.submissions)
    rows = [_row(row, f"{stems[row.submission]}.html", criteria) for row in scores.submissions]
    graded = totals(scores.submissions)
    return render(
        "index.html.j2",
        {
            "rows": rows,
            "criteria": criteria,
            "counts": {status: _count(rows, status) for status in ("graded", "rejected", "not judged")},
            "mean": sum(graded) / len(graded) if graded else None,
            "median": middle(graded),
            "bars": _drawn(distribution(graded)),
            "bar_width": _BAR_WIDTH,
            "plot_height": _PLOT_HEIGHT,
            "means": means(scores.submissions),
            "maxima": maxima(scores.submissions),
            "lost": lost_checks(scores.submissions),
            "open_cases": [case for row in rows if (case := _open_case(row)).reasons],
            "rejected": [row for row in rows if row.score.status == "rejected"],
            "flags": _flags(rows),
            "overrides": _overrides(rows),
            "totals_decided": [
                row for row in rows if row.score.status == "graded" and not row.score.criteria
            ],
            "recipe_names": _recipe_names(rows, recipes),
            "provenance": sorted(scores.provenance.items()),
            "warning": scores.provenance.get("warning"),
        },
        script="index.js",
    )


def _row(row: SubmissionScore, page: str, criteria: Iterable[Criterion]) -> Row:
    points = tuple(row.criteria[name].points if name in row.criteria else None for name in criteria)
    return Row(row, clipped(row.recipe, _NAME_LIMIT), page, points)


def _recipe_names(rows: Iterable[Row], titles: Mapping[str, str]) -> dict[str, str]:
    """Return the titles of the recipes by their names as the table shows them, sorted; "" is no choice."""
    found = {row.recipe: titles.get(row.score.recipe, "") for row in rows if row.recipe}
    return dict(sorted(found.items()))


def _count(rows: Iterable[Row], status: str) -> int:
    return sum(row.score.status == status for row in rows)


def _open_case(row: Row) -> OpenCase:
    score = row.score
    reasons = [
        (f"{name}.{check.id}", check.reason)
        for name, criterion in score.criteria.items()
        for check in criterion.checks
        if check.outcome == "could not judge"
    ]
    if score.status == "not judged" and not reasons:
        reasons = [("", score.reason)]
    return OpenCase(row, tuple(reasons))


def _flags(rows: Iterable[Row]) -> dict[str, list[tuple[Row, str]]]:
    """Return the flags by their id, sorted."""
    found: dict[str, list[tuple[Row, str]]] = {}
    for row in rows:
        for flag in row.score.flags:
            found.setdefault(flag.id, []).append((row, flag.message))
    return dict(sorted(found.items()))


def _overrides(rows: Iterable[Row]) -> list[tuple[Row, str, Check]]:
    """Return the checks that an instructor decided, with their addresses."""
    return [
        (row, f"{name}.{check.id}", check)
        for row in rows
        for name, criterion in row.score.criteria.items()
        for check in criterion.checks
        if check.rule is not None
    ]


def _drawn(bars: Iterable[Bar]) -> list[DrawnBar]:
    bars = list(bars)
    most = max((bar.count for bar in bars), default=0) or 1
    heights = [round(bar.count / most * _PLOT_HEIGHT, 1) for bar in bars]
    return [
        DrawnBar(bar, index * _BAR_WIDTH, round(_PLOT_HEIGHT - height, 1), height)
        for index, (bar, height) in enumerate(zip(bars, heights, strict=True))
    ]
