"""The dates of an assignment: the deadline, the deduction for lateness, and when students see results."""

import math
from datetime import datetime, timedelta, tzinfo
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from harness.formats.toml_file import StrictModel
from harness.recipes.personal import login

ReleaseLevel = Literal["score", "feedback", "solution"]
_A_DAY = timedelta(days=1)
_Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def local_time(moment: datetime, zone: tzinfo, *, seconds: bool = False) -> str:
    """Return an aware time in the format of the pages: "2026-10-27 23:59 CET"."""
    return f"{moment.astimezone(zone):{'%Y-%m-%d %H:%M:%S %Z' if seconds else '%Y-%m-%d %H:%M %Z'}}"


class LatePolicy(StrictModel):
    """The deduction for each started day of lateness, in points out of 100 or in percent of the earned points.

    grace_minutes: a submission within this time after the deadline is not late. most_days: a submission that is late by
    more than this number of days gets no points. extensions: the due dates of students with an extension, by login, in
    the course's local time.
    """

    points_per_day: _Percent | None = None
    percent_per_day: _Percent | None = None
    grace_minutes: Annotated[int, Field(ge=0)] = 0
    most_days: Annotated[int, Field(ge=0)] | None = None
    extensions: dict[str, datetime] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _costs_one_way(self) -> "LatePolicy":
        if self.points_per_day is not None and self.percent_per_day is not None:
            raise ValueError("has points_per_day and percent_per_day: keep one")
        return self

    @property
    def costs(self) -> bool:
        """Whether a late submission can lose points."""
        return bool(self.points_per_day or self.percent_per_day) or self.most_days is not None

    def days_late(self, submitted_at: datetime | None, due: datetime) -> int:
        """Return the number of days by which a submission is late, rounded up; 0 if its time is unknown.

        For a submission after the grace period, the days count from the due date, not from the end of the grace period.
        """
        if submitted_at is None or submitted_at <= due + timedelta(minutes=self.grace_minutes):
            return 0
        return math.ceil((submitted_at - due) / _A_DAY)

    def deduction(self, total: float, days: int) -> float:
        """Return the points to deduct from `total` for these days of lateness: at most `total`, with two decimals."""
        if self.most_days is not None and days > self.most_days:
            return total
        cost = days * (self.points_per_day or 0) + days * (self.percent_per_day or 0) / 100 * total
        return round(min(total, cost), 2)


class Schedule(StrictModel):
    """The dates of an assignment, as local times in one time zone.

    feedback: the time from which students see where they lost points, but nothing that reveals the cause. solution: the
    time from which students see everything.
    """

    time_zone: str
    due: datetime
    late: LatePolicy
    feedback: datetime
    solution: datetime

    @property
    def zone(self) -> ZoneInfo:
        """The time zone of the dates."""
        return ZoneInfo(self.time_zone)

    def deadline(self, student: str) -> datetime:
        """Return the deadline of a student, an aware time, without the grace period."""
        own = {login(name): date for name, date in self.late.extensions.items()}
        return own.get(login(student), self.due).replace(tzinfo=self.zone)

    def level(self, now: datetime, student: str | None = None) -> ReleaseLevel:
        """Return how much a student (None: any student without an extension) may see at `now`, an aware datetime."""
        if now >= self._begins("solution", student):
            return "solution"
        return "feedback" if now >= self._begins("feedback", student) else "score"

    def begins(self, level: Literal["feedback", "solution"], student: str | None = None) -> str:
        """Return the local time from which a student (None: any student without an extension) sees a level."""
        return local_time(self._begins(level, student), self.zone)

    def _begins(self, level: Literal["feedback", "solution"], student: str | None) -> datetime:
        """Return the time at which a release level begins for a student: never before the end of an extension."""
        date = (self.feedback if level == "feedback" else self.solution).replace(tzinfo=self.zone)
        own = {login(name) for name in self.late.extensions}
        if student is None or login(student) not in own:
            return date
        return max(date, self.deadline(student) + timedelta(minutes=self.late.grace_minutes))
