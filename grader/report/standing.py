"""Find the status of each student in each exercise, also if a file is missing or cannot be read."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.report.gradebook import students_of
from grader.report.text import clip, points
from grader.score.identity import STRANGER, same_name
from grader.score.verdict import Scores, SubmissionScore
from harness.recipes.personal import login

NO_EXERCISE = "a file that names no exercise"


@dataclass(frozen=True)
class Standing:
    """The status of one student in one exercise: in one word (`short`), and as a sentence (`words`).

    row: the submission that counts, or None if no submission counts.
    """

    short: str
    words: str
    row: SubmissionScore | None = None


@dataclass(frozen=True)
class StudentStanding:
    """A student's name, and the student's status in each exercise, sorted by exercise."""

    name: str
    exercises: Mapping[str, Standing]


def standings(scores: Scores) -> Mapping[str, StudentStanding]:
    """Return each student's status in the exercises, by login (`harness.recipes.personal.login`), sorted by login.

    An unreadable file belongs to its sender or, if the sender is unknown, to the student in the file name. Students who
    are not on the roster of the course are left out.
    """
    counting: dict[tuple[str, str], SubmissionScore | None] = {}
    names: dict[str, str] = {}
    for student, found in students_of(scores).items():
        names[login(student)] = student
        counting |= {(login(student), exercise): row for exercise, row in found.items()}
    every: dict[str, dict[str, list[SubmissionScore]]] = defaultdict(lambda: defaultdict(list))
    for row in scores.submissions:
        names.setdefault(login(row.student), same_name(row.student))
        if row.status != "not drawn":
            every[login(row.student)][row.recipe or NO_EXERCISE].append(row)
    return {
        student: StudentStanding(
            names[student],
            {
                name: _standing_of(rows, counting.get((student, name)))
                for name, rows in sorted(found.items(), key=lambda item: by_exercise(item[0]))
            },
        )
        for student, found in sorted(every.items())
        if student and not all(is_stranger(row) for rows in found.values() for row in rows)
    }


def is_stranger(row: SubmissionScore) -> bool:
    """Return whether the student of this row is not on the roster of the course."""
    return any(flag.id == STRANGER for flag in row.flags)


def by_exercise(name: str) -> tuple[bool, str]:
    """Return the sort key of an exercise, which puts `NO_EXERCISE` last."""
    return name == NO_EXERCISE, name


def _standing_of(rows: Sequence[SubmissionScore], counting: SubmissionScore | None) -> Standing:
    unread = [row for row in rows if row.status == "rejected"]
    others = [row for row in rows if row is not counting and row.is_there and row.status != "rejected"]
    if counting is not None and counting.is_there:
        short, words = "open", "not judged yet: your instructor has to decide"
        if counting.total is not None:
            short, words = points(counting.total), f"{points(counting.total)} of 100"
        return Standing(
            short, f"{words}. The grader cannot read another file that you handed in." if unread else words, counting
        )
    if others:
        waits = "Your instructor has to decide whose file this is, or which of several files counts."
        return Standing("waits", f"not judged yet. {waits}")
    if unread:
        why = clip(unread[-1].reason, 600)
        return Standing("unread", f"the grader cannot read your file. {why}")
    if any(row.status == "excused" for row in rows):
        return Standing("excused", "excused: this exercise does not count for you")
    return Standing("missing", "missing: you have not handed it in")
