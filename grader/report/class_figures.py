"""What a class looks like in figures: counts, distribution, means, and the checks that were lost."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from grader.score.verdict import Check, Criterion, SubmissionScore, criteria_in

_BIN = 10  # points


@dataclass(frozen=True)
class Bar:
    """One bar of the distribution: totals from `low` to below `high` (the last one includes its end)."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Means:
    """The graded submissions of one recipe, or of all (""): how many, and their mean points; None of none."""

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
        """Lost, as a fraction of judged."""
        return self.lost / self.judged if self.judged else 0.0


def totals(rows: Iterable[SubmissionScore]) -> list[float]:
    """Return the totals of the graded submissions."""
    return [row.total for row in rows if row.status == "graded" and row.total is not None]


def middle(values: Sequence[float]) -> float | None:
    """Return the median, or None of nothing."""
    return median(values) if values else None


def distribution(values: Iterable[float]) -> tuple[Bar, ...]:
    """Return ten bars over 0 to 100 points."""
    counts = Counter(min(max(int(value // _BIN), 0), 100 // _BIN - 1) for value in values)
    return tuple(Bar(index * _BIN, (index + 1) * _BIN, counts[index]) for index in range(100 // _BIN))


def means(rows: Sequence[SubmissionScore]) -> tuple[Means, ...]:
    """Return the means of each recipe, by name, and then of all of them; criteria in the order of `criteria_in`."""
    criteria = criteria_in(rows)
    recipes = sorted({row.recipe for row in rows if row.status == "graded"})
    by_recipe = [
        _means(recipe, [row for row in rows if row.recipe == recipe], criteria) for recipe in recipes
    ]
    return (*by_recipe, _means("", rows, criteria))


def maxima(rows: Sequence[SubmissionScore]) -> dict[Criterion, float]:
    """Return what each criterion is worth, as the first submission that has it says."""
    found: dict[Criterion, float] = {}
    for row in rows:
        for name, criterion in row.criteria.items():
            found.setdefault(name, criterion.max)
    return {name: found[name] for name in criteria_in(rows) if name in found}


def lost_checks(rows: Sequence[SubmissionScore]) -> tuple[LostCheck, ...]:
    """Return every check of the rubrics, those most often lost first; two of one name are one check if worth alike."""
    found: dict[tuple[Criterion, str, float], list[Check]] = {}
    for row in rows:
        for name, criterion in row.criteria.items():
            for check in criterion.checks:
                found.setdefault((name, check.id, check.max), []).append(check)
    every = [_lost_check(criterion, checks) for (criterion, *_), checks in found.items()]
    place = criteria_in(rows).index
    return tuple(
        sorted(every, key=lambda one: (-one.share, -one.points_lost, place(one.criterion), one.id, one.max))
    )


def _lost_check(criterion: Criterion, checks: Sequence[Check]) -> LostCheck:
    earned = [(check.points, check.max) for check in checks if check.points is not None]
    lost = [maximum - points for points, maximum in earned if points < maximum]
    first = checks[0]
    return LostCheck(
        criterion,
        first.id,
        first.title,
        first.max,
        lost=len(lost),
        judged=len(earned),
        open=len(checks) - len(earned),
        points_lost=sum(lost) / len(earned) if earned else 0.0,
    )


def _means(recipe: str, rows: Sequence[SubmissionScore], names: Iterable[Criterion]) -> Means:
    graded = [row for row in rows if row.status == "graded"]
    criteria = []
    for name in names:
        earned = [row.criteria[name].points for row in graded if name in row.criteria]
        criteria.append(_mean([value for value in earned if value is not None]))
    return Means(recipe, len(graded), _mean(totals(graded)), tuple(criteria))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
