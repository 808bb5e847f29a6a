"""How each student stands in each exercise, as the student's page says it: also what is missing, unread or disputed."""

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
    """How one exercise of one student stands, in one word (`short`) and in a sentence (`words`).

    row: the submission that counts, or None.
    """

    short: str
    words: str
    row: SubmissionScore | None = None


@dataclass(frozen=True)
class StudentStanding:
    """A student's name as it is written in the class, and how the student stands in each exercise, sorted."""

    name: str
    exercises: Mapping[str, Standing]


def standings(scores: Scores) -> Mapping[str, StudentStanding]:
    """Return how each student stands, by login as `harness.recipes.personal.login` has it, sorted.

    A file that cannot be read is its sender's; without a platform that tells the sender, the one whom its name says.
    Who is not on the roster of a course is left out.
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
    """Return whether the roster of the course has nobody of the name that this row has."""
    return any(flag.id == STRANGER for flag in row.flags)


def by_exercise(name: str) -> tuple[bool, str]:
    """Return the key by which exercises are sorted: a file that names none comes last."""
    return name == NO_EXERCISE, name


def _standing_of(rows: Sequence[SubmissionScore], counting: SubmissionScore | None) -> Standing:
    unread = [row for row in rows if row.status == "rejected"]
    others = [row for row in rows if row is not counting and row.is_there and row.status != "rejected"]
    if counting is not None and counting.is_there:
        short, words = "open", "not judged yet: it waits for your instructor"
        if counting.total is not None:
            short, words = points(counting.total), f"{points(counting.total)} of 100"
        return Standing(short, f"{words}. Another file cannot be read." if unread else words, counting)
    if others:
        waits = "Your instructor decides whose file this is, or which of several files counts."
        return Standing("waits", f"waits. {waits}")
    if unread:
        why = clip(unread[-1].reason, 600)
        return Standing("unread", f"your file cannot be read. {why}")
    if any(row.status == "excused" for row in rows):
        return Standing("excused", "excused: it does not count")
    return Standing("missing", "missing")
