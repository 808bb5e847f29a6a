"""Apply the rules of a course to the rows of a class: groups, missing work, lateness, attempts and roster."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from grader.course.course import Assignment, Course
from grader.course.lateness import choose_attempt, with_lateness
from grader.course.lock import Handout
from grader.course.roster import with_groups, with_missing, with_roster_flags
from grader.score.deadlines import Schedule
from grader.score.identity import Student, compare_rows
from grader.score.verdict import SubmissionScore
from harness.recipes.cases import Case


@dataclass(frozen=True)
class CourseRows:
    """The parts of a course that the grader needs to complete the rows of a class after scoring."""

    course: Course
    assignment: Assignment
    students: Sequence[Student]
    cases: Sequence[Case]
    handout: Handout

    @property
    def schedule(self) -> Schedule:
        """The dates of the assignment."""
        return self.course.schedule(self.assignment)

    def with_missing(self, rows: Sequence[SubmissionScore]) -> tuple[SubmissionScore, ...]:
        """Return the rows, with additional rows for the other members of groups and for missing work."""
        own = self.assignment
        return tuple(with_missing(with_groups(rows, own.groups), self.students, own.exercises, own.excused, self.cases))

    def compare_rows(self, rows: Sequence[SubmissionScore], now: datetime) -> tuple[SubmissionScore, ...]:
        """Return the rows after these steps: deduct points for lateness, choose the attempts that count, add flags."""
        rows = with_lateness(rows, self.schedule, now)
        rows = compare_rows(rows, partial(choose_attempt, rule=self.assignment.attempts))
        return tuple(with_roster_flags(rows, self.students, self.cases))
