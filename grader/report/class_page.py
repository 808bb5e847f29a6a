"""Render `index.html`: the whole class on one page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from grader.report.template import render
from grader.report.text import clipped, file_stem
from grader.score.verdict import Check, Criterion, Scores, SubmissionScore, criteria_in

_BIN = 10  # points of a histogram bar
_PLOT_HEIGHT = 200
_BAR_WIDTH = 40
_NAME_LIMIT = 80  # characters of a recipe's name; the filter compares the name as it is shown


@dataclass(frozen=True)
class Row:
    """A line of the table: a score, its page, and the points of each criterion (None: open, or not in its rubric)."""

    score: SubmissionScore
    recipe: str
    page: str
    criteria: tuple[float | None, ...]


@dataclass(frozen=True)
class Means:
    """The mean points of the graded submissions of one recipe, or of all ("" as the recipe)."""

    recipe: str
    graded: int
    total: float | None
    criteria: tuple[float | None, ...]


@dataclass(frozen=True)
class LostCheck:
    """How often a check did not earn all its points, among the submissions in which it was judged."""

    criterion: Criterion
    id: str
    title: str
    max: float
    lost: int
    judged: int
    open: int
    points_lost: float  # mean over the submissions in which it was judged

    @property
    def share(self) -> float:
        """Return lost / judged."""
        return self.lost / self.judged if self.judged else 0.0


@dataclass(frozen=True)
class Bar:
    """A bar of the histogram: how many totals lie in [low, high), and where it is drawn. The last includes 100."""

    low: int
    high: int
    count: int
    x: int
    y: float
    height: float


def render_class_page(scores: Scores) -> str:
    """Return the page as HTML."""
    criteria = criteria_in(scores.submissions)
    rows = [_row(row, criteria) for row in scores.submissions]
    every_mean = means(scores.submissions)
    totals = _totals(scores.submissions)
    return render(
        "index.html.j2",
        {
            "rows": rows,
            "criteria": criteria,
            "counts": {status: _count(rows, status) for status in ("graded", "rejected", "not judged")},
            "mean": every_mean[-1].total,
            "median": median(totals) if totals else None,
            "bars": histogram(totals),
            "bar_width": _BAR_WIDTH,
            "plot_height": _PLOT_HEIGHT,
            "means": every_mean,
            "maxima": _maxima(scores.submissions),
            "lost": lost_checks(scores.submissions),
            "waiting": [(row, reasons) for row in rows if (reasons := _open_reasons(row.score))],
            "rejected": [row for row in rows if row.score.status == "rejected"],
            "flags": _flags(rows),
            "decisions": _decisions(rows),
            "totals_decided": [
                row for row in rows if row.score.status == "graded" and not row.score.criteria
            ],
            "recipes": sorted({row.recipe for row in rows if row.recipe}),
            "provenance": sorted(scores.provenance.items()),
            "warning": scores.provenance.get("warning"),
        },
        script="index.js",
    )


def histogram(totals: Iterable[float]) -> list[Bar]:
    """Return ten bars over 0 to 100 points; the highest one fills the plot."""
    last = 100 // _BIN - 1
    counts = Counter(min(max(int(total // _BIN), 0), last) for total in totals)
    most = max(counts.values(), default=1)
    bars = []
    for index in range(last + 1):
        height = round(counts[index] / most * _PLOT_HEIGHT, 1)
        top = round(_PLOT_HEIGHT - height, 1)
        bars.append(Bar(index * _BIN, (index + 1) * _BIN, counts[index], index * _BAR_WIDTH, top, height))
    return bars


def means(rows: Sequence[SubmissionScore]) -> tuple[Means, ...]:
    """Return the means of each recipe, sorted by name, and last those of all; criteria in `criteria_in`'s order."""
    criteria = criteria_in(rows)
    graded = [row for row in rows if row.status == "graded"]
    recipes = sorted({row.recipe for row in graded})
    groups = [(recipe, [row for row in graded if row.recipe == recipe]) for recipe in recipes]
    return tuple(_means(recipe, group, criteria) for recipe, group in [*groups, ("", graded)])


def lost_checks(rows: Sequence[SubmissionScore]) -> list[LostCheck]:
    """Return every check of the rubrics, the most often lost first."""
    found: dict[tuple[Criterion, str, float], list[Check]] = {}
    for row in rows:
        for name, criterion in row.criteria.items():
            for check in criterion.checks:
                found.setdefault((name, check.id, check.max), []).append(check)
    every = [_lost_check(criterion, checks) for (criterion, *_), checks in found.items()]
    place = criteria_in(rows).index
    return sorted(
        every, key=lambda one: (-one.share, -one.points_lost, place(one.criterion), one.id, one.max)
    )


def _row(row: SubmissionScore, criteria: Iterable[Criterion]) -> Row:
    points = tuple(row.criteria[name].points if name in row.criteria else None for name in criteria)
    return Row(row, clipped(row.recipe, _NAME_LIMIT), f"{file_stem(row.submission)}.html", points)


def _count(rows: Iterable[Row], status: str) -> int:
    return sum(row.score.status == status for row in rows)


def _open_reasons(score: SubmissionScore) -> list[tuple[str, str]]:
    """Return (check, why) for all that waits for the instructor; one without a check stands for the whole row."""
    reasons = [
        (f"{name}.{check.id}", check.reason)
        for name, criterion in score.criteria.items()
        for check in criterion.checks
        if check.outcome == "could not judge"
    ]
    if score.status == "not judged" and not reasons:
        return [("", score.reason)]
    return reasons


def _flags(rows: Iterable[Row]) -> dict[str, list[tuple[Row, str]]]:
    """Return the flagged rows, with their messages, by the flag's id."""
    found: dict[str, list[tuple[Row, str]]] = {}
    for row in rows:
        for flag in row.score.flags:
            found.setdefault(flag.id, []).append((row, flag.message))
    return dict(sorted(found.items()))


def _decisions(rows: Iterable[Row]) -> list[tuple[Row, str, Check]]:
    """Return the checks that an instructor decided, with their addresses."""
    return [
        (row, f"{name}.{check.id}", check)
        for row in rows
        for name, criterion in row.score.criteria.items()
        for check in criterion.checks
        if check.rule is not None
    ]


def _totals(rows: Iterable[SubmissionScore]) -> list[float]:
    return [row.total for row in rows if row.status == "graded" and row.total is not None]


def _maxima(rows: Sequence[SubmissionScore]) -> dict[Criterion, float]:
    """Return the most points of each criterion, as the first submission that has it says."""
    found: dict[Criterion, float] = {}
    for row in rows:
        for name, criterion in row.criteria.items():
            found.setdefault(name, criterion.max)
    return found


def _means(recipe: str, graded: Sequence[SubmissionScore], criteria: Iterable[Criterion]) -> Means:
    points = []
    for name in criteria:
        earned = [row.criteria[name].points for row in graded if name in row.criteria]
        points.append(_mean([value for value in earned if value is not None]))
    return Means(recipe, len(graded), _mean(_totals(graded)), tuple(points))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _lost_check(criterion: Criterion, checks: Sequence[Check]) -> LostCheck:
    earned = [(check.points, check.max) for check in checks if check.points is not None]
    missing = [maximum - points for points, maximum in earned if points < maximum]
    first = checks[0]
    return LostCheck(
        criterion,
        first.id,
        first.title,
        first.max,
        lost=len(missing),
        judged=len(earned),
        open=len(checks) - len(earned),
        points_lost=sum(missing) / len(earned) if earned else 0.0,
    )
