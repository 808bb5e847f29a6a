"""Deduct points for lateness from the rows of a class, and choose which attempt of a student counts.

All times have a time zone. If the time of a submission is unknown, the student loses no points without a decision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from grader.score.deadlines import Schedule
from grader.score.verdict import Lateness, SubmissionScore, with_criteria

AttemptRule = Literal["latest", "best", "first"]


def with_lateness(
    rows: Iterable[SubmissionScore], schedule: Schedule, now: datetime | None = None
) -> tuple[SubmissionScore, ...]:
    """Return the rows with totals after the deduction for lateness.

    now: a time at which all submissions had arrived. If the time of a submission is unknown, and it may have been so
    late that it costs points, the row becomes open and needs a decision. If `now` is None, no row becomes open. A total
    that the instructor has set stays unchanged. If the instructor has added points, points for lateness are still
    deducted.
    """

    def late(row: SubmissionScore) -> SubmissionScore:
        is_set = row.rule is not None and row.rule.added is None
        if not row.total or is_set:
            return row
        moment = row.arrival.submitted_at if row.arrival else None
        if moment is None and now is not None and not _is_in_time(row, schedule, now):
            return with_criteria(replace(row, untimed=True), row.criteria)
        days = schedule.late.days_late(moment, schedule.deadline(row.student))
        if not days:
            return row
        cost = schedule.late.deduction(row.total, days)
        return replace(row, total=round(row.total - cost, 2), late=Lateness(days=days, cost=cost))

    return tuple(map(late, rows))


def _is_in_time(row: SubmissionScore, schedule: Schedule, now: datetime) -> bool:
    """Return whether a submission certainly loses no points for lateness, although its time is unknown."""
    # Canvas marks late submissions in its file names.
    on_canvas = row.arrival is not None and any(one.platform == "Canvas" for one in row.arrival.senders)
    is_unmarked = on_canvas and row.arrival is not None and not row.arrival.late
    never_costs = not schedule.late.costs
    return never_costs or is_unmarked or not schedule.late.days_late(now, schedule.deadline(row.student))


def choose_attempt(attempts: Sequence[SubmissionScore], rule: AttemptRule) -> SubmissionScore | None:
    """Return the attempt that counts, or None if the rule does not decide which one counts.

    The rules "latest" and "first" do not decide if a time is unknown, or if two attempts have the same time and
    different points. The rule "best" does not decide if an attempt has no total yet. Rejected attempts are ignored, and
    so are repeated attempts with the same bytes. If several attempts are equal by the rule, the one with the last file
    name counts.
    """
    whole = _without_repeats([row for row in attempts if row.status != "rejected"])
    if len(whole) <= 1:
        return next(iter(whole), None)
    keys: list[Any] = [row.total if rule == "best" else row.arrival and row.arrival.submitted_at for row in whole]
    if None in keys:
        return None
    wanted = min(keys) if rule == "first" else max(keys)
    chosen = [row for row, key in zip(whole, keys, strict=True) if key == wanted]
    if len({row.total for row in chosen}) > 1:
        return None
    return max(chosen, key=lambda row: row.submission)


def _without_repeats(attempts: Sequence[SubmissionScore]) -> list[SubmissionScore]:
    """Return the attempts. Leave out an attempt if it has the same bytes as the attempt before it."""

    def digest(row: SubmissionScore) -> object:
        return row.provenance.get("tarball_sha256", row.submission)

    timed = sorted((row for row in attempts if _moment(row)), key=_moment)
    unknown = [row for row in attempts if not _moment(row)]
    if unknown and len({digest(row) for row in attempts}) > 1:
        return [*attempts]
    # Keep the earliest attempt of each group of equal bytes.
    return [next(same) for _, same in groupby([*timed, *unknown], key=digest)]


def _moment(row: SubmissionScore) -> Any:
    return row.arrival and row.arrival.submitted_at
