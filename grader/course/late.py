"""How late a submission is, what that costs, and which attempt counts.

Times are aware. Nobody loses points because a time is unknown.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from grader.score.verdict import Lateness, SubmissionScore
from harness.toml_file import StrictModel

Rule = Literal["latest", "best", "first"]
_A_DAY = timedelta(days=1)
_Share = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class LatePolicy(StrictModel):
    """What lateness costs: points of 100, or per cent of what was earned, for each day that has begun.

    Within `grace_minutes` nothing is late. After `most_days` a submission gets no points. `extensions` gives single
    students, by login, another due date: a local time of the course.
    """

    points_per_day: _Share | None = None
    percent_per_day: _Share | None = None
    grace_minutes: Annotated[int, Field(ge=0)] = 0
    most_days: Annotated[int, Field(ge=0)] | None = None
    extensions: dict[str, datetime] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _costs_one_way(self) -> "LatePolicy":
        if self.points_per_day is not None and self.percent_per_day is not None:
            raise ValueError("has points_per_day and percent_per_day: keep one")
        return self

    def days_late(self, submitted_at: datetime | None, due: datetime) -> int:
        """Return how many days late something is, a begun day as a whole one; 0 for an unknown time.

        After the grace, days count from the due date, not from its end.
        """
        if submitted_at is None or submitted_at <= due + timedelta(minutes=self.grace_minutes):
            return 0
        return math.ceil((submitted_at - due) / _A_DAY)

    def deduction(self, total: float, days: int) -> float:
        """Return how many of these points so many days cost: never more than all, rounded to hundredths."""
        if self.most_days is not None and days > self.most_days:
            return total
        cost = days * (self.points_per_day or 0) + days * (self.percent_per_day or 0) / 100 * total
        return round(min(total, cost), 2)


def with_lateness(
    rows: Iterable[SubmissionScore], policy: LatePolicy, due: Callable[[str], datetime]
) -> tuple[SubmissionScore, ...]:
    """Return the rows with what lateness costs taken from their totals; due: until when a student has time.

    A total that the instructor has set stays as it is; points added to it do not undo lateness.
    """

    def late(row: SubmissionScore) -> SubmissionScore:
        days = policy.days_late(row.arrival.submitted_at if row.arrival else None, due(row.student))
        is_set = row.rule is not None and row.rule.added is None
        if row.total is None or is_set or not days:
            return row
        cost = policy.deduction(row.total, days)
        return row.model_copy(update={"total": round(row.total - cost, 2), "late": Lateness(days=days, cost=cost)})

    return tuple(map(late, rows))


def counting(attempts: Sequence[SubmissionScore], rule: Rule) -> SubmissionScore | None:
    """Return the attempt that counts, or None if that cannot be told: a time is unknown, or the best waits for points.

    What was rejected takes no place. Of equal times, and of equal points, the one whose name comes last counts.
    """
    whole = [row for row in attempts if row.status != "rejected"]
    if len(whole) <= 1:
        return next(iter(whole), None)
    keys: list[Any] = [row.total if rule == "best" else row.arrival and row.arrival.submitted_at for row in whole]
    if None in keys:
        return None
    if rule == "first":
        first = min(keys)
        return max((row for row, key in zip(whole, keys, strict=True) if key == first), key=lambda row: row.submission)
    return max(zip(whole, keys, strict=True), key=lambda pair: (pair[1], pair[0].submission))[0]
