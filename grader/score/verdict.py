"""The records of `scores.json`: rows, criteria, items and flags. All reports are made from these records."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.dataclasses import dataclass

from grader.intake.folder import Arrival
from grader.score.deadlines import Schedule
from grader.score.rubric import CRITERIA, Criterion
from harness.submission.check_run import ItemOutcome

RowStatus = Literal["graded", "rejected", "not judged", "missing", "excused", "not drawn"]
ABSENT: tuple[RowStatus, ...] = ("missing", "excused", "not drawn")  # nothing was handed in
UNCOUNTED: tuple[RowStatus, ...] = ("excused", "not drawn")  # nothing was handed in, but this costs no points
ShownRow = tuple[str, str, float]  # the id, the title and the maximum points of a rubric item
_UNTIMED = "The time of submission is unknown, but a late submission loses points."
BY_RULE = " (The grader: "  # if the instructor has decided the total, the grader's own reason follows these words
_NO_OTHERS = ConfigDict(extra="forbid")


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """The verdict of the grader on an item, before the instructor changed this verdict."""

    outcome: ItemOutcome
    points: float | None
    reason: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RubricItem:
    """One item of the rubric, with its verdict.

    outcome: `passed` means all points, and `failed` means fewer points, perhaps 0. With `could not judge`, `points` is
        None, never 0.
    reason: the facts that decided the outcome, as plain text.
    remedy: how to earn the missing points, as plain text, or "".
    """

    id: str
    title: str
    outcome: ItemOutcome
    points: float | None
    max: float
    reason: str
    remedy: str = ""
    rule: RuleVerdict | None = None  # set if the instructor has changed the verdict
    comment: str = ""  # the instructor's comment


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class CriterionScore:
    """The items of one criterion. `points` is the sum of their points, or None while an item has no points yet."""

    points: float | None
    max: float
    checks: tuple[RubricItem, ...]


Criteria = Mapping[Criterion, CriterionScore]


def _check_if_read(value: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Validate criteria from JSON. Skip criteria that this process made, because they may have to be loaded first."""
    return check(value) if info.mode == "json" else value


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Flag:
    """A note that asks the instructor to look at something. A flag never changes points."""

    id: str
    message: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate limits the total of a submission to `most`, unless the submission earns one of the items in `opens`.

    opens: for each item (as `criterion.id`), the share of its points that counts as earned. why: the reason for the
    limit, as a sentence for the student.
    """

    id: str
    most: float
    opens: dict[str, float]
    why: str

    def holds(self, criteria: Criteria) -> bool:
        """Return whether the gate limits the total, because no item in `opens` is earned."""
        checks = {f"{name}.{check.id}": check for name, score in criteria.items() for check in score.checks}
        return not any(_is_earned(checks[name], share) for name, share in self.opens.items() if name in checks)


def _is_earned(check: RubricItem, share: float) -> bool:
    return check.outcome == "passed" or 0 < (check.points or 0.0) >= share * check.max


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class RuleTotal:
    """The total that the grader gave a submission, before the instructor changed it.

    added: the number of points that the instructor added, or None if the instructor gave a new total.
    """

    status: RowStatus
    total: float | None
    reason: str
    added: float | None = None


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Lateness:
    """The number of days by which a submission is late, rounded up, and the points that it loses for this."""

    days: int
    cost: float


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class SubmissionScore:
    """One row of `scores.json`.

    status: A `graded` row has a total. A `rejected` row is about an unusable archive, and has the total 0 and no
        criteria. A `not judged` row waits for the instructor: it has no total, and only the items that could be judged.
        For a `missing` or `excused` row, nothing was handed in. An `excused` row costs no points.
    reason: why a submission was rejected or not judged, or why a gate lowers its total.
    student, recipe: the names in the manifest or, if the manifest cannot be read, in the file name.
    arrival: the file, the senders and the time of the submission; None if unknown.
    not_counting: why the row is left out of the gradebook, or "".
    copy_of: if a group handed in one submission, and this row repeats its score for a member: the name of that
        submission, else "".
    limits: the gates that may limit the total.
    late: the lateness, if it lowers the total.
    untimed: whether the row waits for the instructor, because late submissions lose points and the time is unknown.
    """

    submission: str
    student: str
    recipe: str
    status: RowStatus
    reason: str = ""
    total: float | None
    criteria: Annotated[Criteria, WrapValidator(_check_if_read)]
    flags: tuple[Flag, ...] = ()
    limits: tuple[Gate, ...] = ()
    provenance: dict[str, str | int | float | bool | None]
    arrival: Arrival | None = None
    not_counting: str = ""
    copy_of: str = ""
    late: Lateness | None = None
    untimed: bool = False
    rule: RuleTotal | None = None  # set if the instructor has decided the total

    @property
    def is_decided(self) -> bool:
        """Whether the instructor has changed any points of this row."""
        checks = (check for criterion in self.criteria.values() for check in criterion.checks)
        return self.rule is not None or any(check.rule for check in checks)

    @property
    def is_there(self) -> bool:
        """Whether the student handed in a file."""
        return self.status not in ABSENT

    @property
    def limit(self) -> Gate | None:
        """The gate that lowers the total, or None."""
        total = total_of(self.criteria) if self.criteria else None
        if total is None:
            return None
        low = (limit for limit in self.limits if limit.most < total and limit.holds(self.criteria))
        return min(low, key=lambda limit: limit.most, default=None)

    @property
    def withheld(self) -> float:
        """The points that the gate removes from the total."""
        return round((total_of(self.criteria) or 0.0) - self.limit.most, 2) if self.limit else 0.0


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Decided:
    """One entry of the instructor's decisions file, and whether the entry applies. Students do not see it."""

    submission: str
    about: str  # what the decision changes: an item as `criterion.id`, "the total" or "the student"
    says: str
    comment: str
    who: str
    when: str
    state: Literal["holds", "replaced", "withdrawn", "not applied"]
    why: str = ""  # the reason why the decision is not applied


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Change:
    """A submission whose total differs from the previous scores, and why."""

    submission: str
    before: str
    after: str
    why: str


@dataclass(config=_NO_OTHERS, frozen=True, slots=True, kw_only=True)
class Scores:
    """The content of `scores.json`. The rows are sorted by the name of the submission.

    course, assignment: the id of the course and of the assignment; both are "" if there is no course.
    decisions: all decisions of the instructor, in the order of the decisions file.
    changes: the totals that differ from the previous scores.
    upgrade: how the suite or the rubric has changed since the previous scores, in words.
    schedule: the dates of the assignment; None if there is no course.
    pools: groups of cases; each student gets one case from each group.
    """

    format_version: Literal[1] = 1
    course: str = ""
    assignment: str = ""
    provenance: dict[str, str | int | float | bool | None]
    submissions: tuple[SubmissionScore, ...]
    decisions: tuple[Decided, ...] = ()
    changes: tuple[Change, ...] = ()
    upgrade: str = ""
    schedule: Schedule | None = None
    pools: tuple[tuple[str, ...], ...] = ()

    @property
    def zone(self) -> tzinfo:
        """The time zone for dates on pages."""
        return self.schedule.zone if self.schedule else UTC


def full(id: str, title: str, maximum: float, reason: str) -> RubricItem:
    """Return an item with all its points."""
    return RubricItem(id=id, title=title, outcome="passed", points=maximum, max=maximum, reason=reason)


def lost(id: str, title: str, maximum: float, reason: str, remedy: str, *, points: float = 0.0) -> RubricItem:
    """Return a failed item with `points`, which must be fewer than the maximum."""
    return RubricItem(id=id, title=title, outcome="failed", points=points, max=maximum, reason=reason, remedy=remedy)


def open_item(id: str, title: str, maximum: float, reason: str) -> RubricItem:
    """Return an item without points, which the instructor has to decide."""
    return RubricItem(id=id, title=title, outcome="could not judge", points=None, max=maximum, reason=reason)


def criterion_score(checks: tuple[RubricItem, ...]) -> CriterionScore:
    """Return the score of a criterion: the sum of the points of its items."""
    points = _sum(check.points for check in checks)
    return CriterionScore(points=points, max=sum(check.max for check in checks), checks=checks)


def total_of(criteria: Criteria) -> float | None:
    """Return the sum of all criteria, at least 0, or None if a criterion is missing or has no points yet."""
    names = CRITERIA if not criteria or criteria.keys() & set(CRITERIA) else tuple(criteria)
    total = _sum(criteria[name].points if name in criteria else None for name in names)
    return None if total is None else max(total, 0.0)


def criteria_in(rows: Iterable[SubmissionScore]) -> tuple[Criterion, ...]:
    """Return every criterion that these rows have, `CRITERIA` first. If no row has criteria, return `CRITERIA`."""
    found = dict.fromkeys(name for row in sorted(rows, key=lambda row: row.recipe) for name in row.criteria)
    others = tuple(name for name in found if name not in CRITERIA)
    return (*CRITERIA, *others) if found.keys() & set(CRITERIA) or not found else others


def _sum(points: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in points:
        if value is None:
            return None
        total += value
    return round(total, 2)


def _waiting_reason(criteria: Criteria) -> str:
    open_checks = [check.title for score in criteria.values() for check in score.checks if check.points is None]
    return f"The instructor has to decide: {'; '.join(open_checks)}."


def with_criteria(row: SubmissionScore, criteria: Criteria) -> SubmissionScore:
    """Return the row with these criteria and their total, which a gate may limit; no total if an item has no points."""
    total = total_of(criteria)
    if total is None:
        return replace(row, criteria=criteria, status="not judged", total=None, reason=_waiting_reason(criteria))
    row = replace(row, criteria=criteria, status="graded", total=total, reason="")
    if row.limit is not None:
        reason = f"The rubric limits the total to {row.limit.most:g} instead of {total:g}. {row.limit.why}"
        row = replace(row, total=row.limit.most, reason=reason)
    if row.untimed and row.total:
        reason = f"{_UNTIMED} If this submission was on time, it has {row.total:g} of 100 points. {row.reason}".strip()
        return replace(row, status="not judged", total=None, reason=reason)
    return row


def scale_check(check: RubricItem, maximum: float) -> RubricItem:
    """Return the item with its points scaled to another maximum."""
    if check.max == maximum:
        return check
    points = None if check.points is None else round(check.points * maximum / check.max, 2)
    return replace(check, max=maximum, points=points)
