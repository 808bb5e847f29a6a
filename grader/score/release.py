"""Remove the parts of a score that its student may not see yet. Every page and file for a student uses the result."""

from dataclasses import replace
from datetime import datetime

from grader.score.deadlines import ReleaseLevel
from grader.score.rubric import Criterion
from grader.score.verdict import BY_RULE, RubricItem, Scores, SubmissionScore

# The reasons of these items mention only the submission. The reasons of all other items may reveal the cause, the
# reference fix or a value of the healthy run, so students see these reasons only together with the solution.
_ABOUT_THE_WORK = {
    "reproducibility": ("archive", "broken_log", "broken_checkpoint", "fixed_log", "fixed_checkpoint"),
    "diagnostics": ("broken_complete", "fixed_complete", "broken_cited"),
    "explanation": ("form",),
}
_LATER = "You will see the reason together with the solution."


def level_of(scores: Scores, now: datetime, student: str | None = None) -> ReleaseLevel:
    """Return how much a student may see at `now`, an aware datetime. Without a course, students see everything.

    student: None for a student without an extension.
    """
    return scores.schedule.level(now, student) if scores.schedule else "solution"


def as_students_see(scores: Scores, now: datetime) -> Scores:
    """Return the scores as students may see them at `now`. The reason of each row says when students will see more."""
    if (schedule := scores.schedule) is None:
        return scores
    rows = []
    for row in scores.submissions:
        level = schedule.level(now, row.student)
        more = f"The solution follows on {schedule.begins('solution', row.student)}."
        if level == "score":
            more = f"Feedback follows on {schedule.begins('feedback', row.student)}. {more}"
        rows.append(seen_by_student(row, level, more))
    return replace(scores, submissions=tuple(rows))


def seen_by_student(row: SubmissionScore, level: ReleaseLevel, more: str = "") -> SubmissionScore:
    """Return a row without the parts that its student may not see yet. `more` is added to the reason of the row.

    At the level `score`, the student sees the total and the deduction for lateness. At the level `feedback`, the
    student also sees the items and the flags, but only the reasons that do not reveal the solution. A rejected row
    keeps its reason, which only says what is wrong with the archive.
    """
    if level == "solution" or row.status == "rejected" or not row.is_there:
        return row
    reason = "Your instructor has to decide." if row.total is None else ""
    if level == "score":
        return replace(row, criteria={}, flags=(), limits=(), rule=None, reason=f"{reason} {more}".strip())
    if row.rule is not None:
        reason = row.reason.partition(BY_RULE)[0]
    elif row.limit:
        reason = f"The rubric limits the total to {row.limit.most:g}."
    criteria = {
        name: replace(criterion, checks=tuple(_without_answer(name, check) for check in criterion.checks))
        for name, criterion in row.criteria.items()
    }
    limits = tuple(replace(limit, id="limit", why=_LATER) for limit in row.limits)
    return replace(row, criteria=criteria, limits=limits, rule=None, reason=f"{reason} {more}".strip())


def _without_answer(criterion: Criterion, check: RubricItem) -> RubricItem:
    if check.id in _ABOUT_THE_WORK.get(criterion, ()):
        return check
    if check.rule is not None:  # then the instructor decided, and the reason says only this
        return replace(check, remedy="", rule=replace(check.rule, reason=_LATER))
    return replace(check, reason=_LATER, remedy="")
