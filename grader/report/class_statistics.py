"""Compute statistics of a class: a table of students by exercise, and difficulty and discrimination of each exercise.

The statistics include only graded submissions that count. Difficulty is the mean total of an exercise. Discrimination
is the correlation between the totals of an exercise and the mean totals of the same students in their other exercises
(the corrected item-total correlation; Crocker and Algina, "Introduction to Classical and Modern Test Theory", 1986,
chapter 14). The 95 % interval of the mean comes from the normal distribution, the interval of the correlation from
Fisher's z.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import StatisticsError, correlation, fmean, median, stdev

from grader.report.gradebook import exercises_of, grade, students_of
from grader.report.standing import NO_EXERCISE, by_exercise, standings
from grader.report.text import MISSING, tenths
from grader.score.verdict import Scores, SubmissionScore
from harness.recipes.personal import login

_SURE = 1.96  # half the width of a 95 % interval, in standard deviations
_LEAST = 4  # the minimum number of students for a correlation
ITEM_COLUMNS = (
    "Exercise", "Graded", "Mean", "95 % interval", "Discrimination", "95 % interval",
    "Files per student", "Hours between files",
)  # fmt: skip
Interval = tuple[float, float]
People = Mapping[str, tuple[str, str]]  # the name and the section of each student, by login


@dataclass(frozen=True)
class ExerciseFigures:
    """The statistics of one exercise. A value is None if there are too few submissions.

    graded: the number of graded submissions that count. discrimination: a correlation from -1 to 1. attempts: the mean
    number of files per student. hours: the median number of hours between two files of a student.
    """

    exercise: str
    graded: int
    mean: float | None
    mean_interval: Interval | None
    discrimination: float | None
    discrimination_interval: Interval | None
    attempts: float | None
    hours: float | None


def matrix(scores: Scores, people: People) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Return the headings and the lines of a table of students by exercise, and the lines of a table of sections.

    A cell of the first table contains points or the student's status. Its last column is the grade that is exported, in
    which a missing exercise counts as 0 points. A line of the second table has a section, the number of its graded
    submissions, and their mean total.
    people: the name and the section of each student, by login (`harness.recipes.personal`).
    """
    found, students = standings(scores), students_of(scores)
    exercises = sorted({name for student in found.values() for name in student.exercises}, key=by_exercise)
    counting = [name for name in exercises if name != NO_EXERCISE]
    lines = []
    sections: dict[str, list[float]] = defaultdict(list)
    for key, student in found.items():
        name, section = people.get(key, ("", ""))
        cells = [student.exercises[one].short if one in student.exercises else MISSING for one in exercises]
        rows = [standing.row for standing in student.exercises.values()]
        sections[section] += [row.total for row in rows if row is not None and row.total is not None]
        lines.append([student.name, name, section, *cells, tenths(grade(students.get(student.name, {}), counting))])
    means = [
        [name or MISSING, str(len(totals)), tenths(fmean(totals) if totals else None)]
        for name, totals in sorted(sections.items())
    ]
    return ["Student", "Name", "Section", *exercises, "Grade"], lines, means


def items(scores: Scores) -> list[ExerciseFigures]:
    """Return the statistics of each exercise that somebody handed in, sorted."""
    students = students_of(scores)
    exercises = exercises_of(students)
    totals = [
        [None if (row := found.get(exercise)) is None else row.total for exercise in exercises]
        for found in students.values()
    ]
    attempts = _attempts(scores.submissions)
    return [_item(name, place, totals, attempts[name]) for place, name in enumerate(exercises)]


def item_cells(item: ExerciseFigures) -> list[str]:
    """Return the statistics of an exercise as texts, in the order of `ITEM_COLUMNS`."""

    def interval(pair: Interval | None, digits: int) -> str:
        return MISSING if pair is None else f"{pair[0]:.{digits}f} to {pair[1]:.{digits}f}"

    found = item.discrimination
    return [
        item.exercise,
        str(item.graded),
        tenths(item.mean),
        interval(item.mean_interval, 1),
        MISSING if found is None else f"{found:.2f}",
        interval(item.discrimination_interval, 2),
        tenths(item.attempts),
        tenths(item.hours),
    ]


def _item(
    name: str, place: int, totals: Sequence[Sequence[float | None]], attempts: Sequence[Sequence[datetime | None]]
) -> ExerciseFigures:
    own = [row[place] for row in totals]
    graded = [total for total in own if total is not None]
    rest = [[one for at, one in enumerate(row) if at != place and one is not None] for row in totals]
    pairs = [(one, fmean(others)) for one, others in zip(own, rest, strict=True) if one is not None and others]
    found = _correlation(pairs)
    gaps = [
        (after - before).total_seconds() / 3600
        for moments in attempts
        for before, after in pairwise(sorted(filter(None, moments)))
    ]
    return ExerciseFigures(
        exercise=name,
        graded=len(graded),
        mean=fmean(graded) if graded else None,
        mean_interval=_around_mean(graded),
        discrimination=found,
        discrimination_interval=None if found is None else _around_correlation(found, len(pairs)),
        attempts=fmean(map(len, attempts)) if attempts else None,
        hours=median(gaps) if gaps else None,
    )


def _around_mean(totals: Sequence[float]) -> Interval | None:
    if len(totals) < 2:
        return None
    half = _SURE * stdev(totals) / math.sqrt(len(totals))
    return max(fmean(totals) - half, 0.0), min(fmean(totals) + half, 100.0)


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    try:
        return correlation(*zip(*pairs, strict=True)) if len(pairs) >= _LEAST else None
    except StatisticsError:  # all totals are equal
        return None


def _around_correlation(found: float, count: int) -> Interval | None:
    if count < _LEAST or abs(found) >= 1:
        return None
    half = _SURE / math.sqrt(count - 3)
    return math.tanh(math.atanh(found) - half), math.tanh(math.atanh(found) + half)


def _attempts(rows: Iterable[SubmissionScore]) -> Mapping[str, list[list[datetime | None]]]:
    """Return, for each exercise, a list for each student with the times of submission of the student's files."""
    found: dict[str, dict[str, list[datetime | None]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.is_there:
            found[row.recipe][login(row.student)].append(row.arrival.submitted_at if row.arrival else None)
    return defaultdict(list, {name: list(of_student.values()) for name, of_student in found.items()})
