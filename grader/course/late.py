"""How late a submission is, what that costs, and which attempt counts: functions of times and points alone.

Times are aware. Nobody loses points because a time is unknown.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

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


class Attempt(NamedTuple):
    """One of a student's submissions of a case: its name, its time, and its points less those for lateness."""

    name: str
    submitted_at: datetime | None
    total: float | None


def counting(attempts: Sequence[Attempt], rule: Rule) -> Attempt | None:
    """Return the attempt that counts, or None if that cannot be told: a time is unknown, or the best waits for points.

    Leave out what was rejected: a broken file takes no place. Of equal times, and of equal points, the one whose name
    comes last counts.
    """
    if len(attempts) <= 1:
        return next(iter(attempts), None)
    keys = [item.total if rule == "best" else item.submitted_at for item in attempts]
    if None in keys:
        return None
    if rule == "first":
        earliest = min(item.submitted_at for item in attempts if item.submitted_at is not None)
        return max((item for item in attempts if item.submitted_at == earliest), key=lambda item: item.name)
    return max(zip(attempts, keys, strict=True), key=lambda pair: (pair[1], pair[0].name))[0]
