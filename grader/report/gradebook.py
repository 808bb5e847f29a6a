"""Write the scores as tables: `gradebook.csv`, the same table as JSON, and the tables that Canvas and Moodle import."""

import csv
import hmac
import html
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal

from pydantic_core import to_json

from grader.report.text import clip, late_words, points
from grader.score.identity import find_left_out, same_name
from grader.score.verdict import UNCOUNTED, Flag, RubricItem, Scores, SubmissionScore, criteria_in
from harness.recipes.personal import login
from harness.submission.document import visible

GradebookPlatform = Literal["canvas", "moodle"]
GRADEBOOK = "gradebook.csv"
COLUMNS = ("student", "recipe", "submission", "status", "total")  # the first columns of `gradebook.csv`
_FEEDBACK_LIMIT = 4000  # the maximum number of characters

# Matches the places where a spreadsheet would see the beginning of a formula. A formula begins with a sign, in ASCII or
# in the full-width form that East Asian editions accept, perhaps after spaces and quotes. It may also begin after a
# semicolon or a tab inside a text, because some spreadsheets split the text there in spite of the quotes.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return the bytes of `gradebook.csv` (RFC 4180, in UTF-8 with the byte order mark that Excel needs).

    The table has one row for each submission, except the submissions that `find_left_out` returns. If points are open,
    the cell is empty, never 0. The total is the sum of the criteria, minus the points in the columns `limit` (which a
    limit of the rubric removes) and `lateness`. If the instructor has decided the total, the column `decided` has the
    reason. No text can become a formula; see `cell`.
    """
    criteria = criteria_in(scores.submissions)
    rows = []
    for row in _counting_rows(scores):
        earned = [row.criteria[name].points if name in row.criteria else None for name in criteria]
        flags = " | ".join(f"{flag.id}: {flag.message}" for flag in row.flags)
        texts = map(cell, (row.student, row.recipe, row.submission, row.status))
        less = (row.withheld or None, row.late.cost if row.late else None)
        decided = row.reason if row.rule else ""
        rows.append([*texts, *map(number, (row.total, *earned, *less)), cell(decided), cell(flags)])
    return csv_bytes([(*COLUMNS, *criteria, "limit", "lateness", "decided", "flags"), *rows], mark=True)


def gradebook_json(scores: Scores) -> bytes:
    """Return the rows of `gradebook.csv` as strict JSON, with null for open points and with unchanged texts."""
    rows = [
        {
            **{name: getattr(row, name) for name in COLUMNS},
            "criteria": {name: criterion.points for name, criterion in row.criteria.items()},
            "limit": row.withheld or None,
            "lateness": row.late.cost if row.late else None,
            "decided": row.reason if row.rule else "",
            "flags": [asdict(flag) for flag in row.flags],
        }
        for row in _counting_rows(scores)
    ]
    return to_json(rows, indent=1, inf_nan_mode="null") + b"\n"


def pseudonymous(scores: Scores, secret: str) -> Scores:
    """Return the scores for research: with pseudonyms, without texts that people wrote, and without times.

    The result still contains the number of late days. With the same secret, a student always has the same pseudonym.
    Without the secret, nobody can compute the pseudonym of a student (HMAC, RFC 2104).
    """
    rows = []
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for row in scores.submissions:
        name = hmac.new(secret.encode(), login(row.student).encode(), "sha256").hexdigest()[:12]
        counts[name, row.recipe] += 1
        flags = tuple(Flag(id=flag.id, message="") for flag in row.flags)
        rule = replace(row.rule, reason="") if row.rule else None
        rows.append(
            replace(
                row,
                student=name,
                submission=f"{name}_{row.recipe}_{counts[name, row.recipe]}",
                reason="decided" if rule else "",
                flags=flags,
                rule=rule,
                provenance={},  # the digest of a tarball could identify its sender
                arrival=None,
                not_counting="yes" if row.not_counting else "",
            )
        )
    return replace(scores, submissions=tuple(sorted(rows, key=lambda row: row.submission)), decisions=(), changes=())


def _counting_rows(scores: Scores) -> list[SubmissionScore]:
    outside = find_left_out(scores.submissions)
    return [row for row in scores.submissions if row.submission not in outside and row.status != "not drawn"]


# The row of each student in each exercise, sorted. The row is None if the instructor must first decide whose submission
# it is, or which submission counts.
Students = Mapping[str, Mapping[str, SubmissionScore | None]]


def exercises_of(students: Students) -> list[str]:
    """Return the exercises, sorted. Leave out an exercise if no student has a row for it."""
    return sorted({name for found in students.values() for name, row in found.items() if row is not None})


def students_of(scores: Scores) -> Students:
    """Return the rows that count, by student and exercise. Every export is computed from this table."""
    outside = not_exported(scores)
    found: dict[str, dict[str, SubmissionScore | None]] = {}
    for row in sorted(scores.submissions, key=lambda row: (same_name(row.student), row.recipe)):
        if row.submission not in outside:
            found.setdefault(same_name(row.student), {})[row.recipe] = row
    for row in scores.submissions:
        if row.submission in outside and (own := found.get(same_name(row.student))) is not None:
            # A file that names no exercise may belong to any exercise.
            for exercise in [row.recipe] if row.recipe else [*own]:
                if (other := own.get(exercise)) is None or not other.is_there:
                    own[exercise] = None
    return found


def grade(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> float | None:
    """Return the mean of a student's totals in these exercises, or None if an exercise waits for the instructor.

    A missing exercise counts as 0 points. An exercise from which the student is excused does not count. A student who
    handed in none of these exercises has no grade.
    """
    exercises = [one for one in exercises if (row := found.get(one)) is None or row.status not in UNCOUNTED]
    rows = [found[exercise] for exercise in exercises if exercise in found]
    rows = [row for row in rows if row is None or row.is_there]
    known = [row for row in rows if row is not None and row.status != "not judged"]
    if not rows or len(known) < len(rows):
        return None
    return sum(row.total or 0.0 for row in known) / len(exercises)


def is_excused(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> bool:
    """Return whether a student is excused from all of these exercises. Ignore cases that the student did not get."""
    rows = [found.get(exercise) for exercise in exercises]
    rows = [row for row in rows if row is None or row.status != "not drawn"]
    return bool(rows) and all(row is not None and row.status == "excused" for row in rows)


def export(scores: Scores, platform: GradebookPlatform) -> bytes:
    """Return the table that a platform imports, with one row per student and one column per exercise.

    The login is in the column in which the platform looks for it. If points are open, the student gets no grade, never
    0. The table leaves out the submissions that `not_exported` returns.
    """
    students = students_of(scores)
    return _canvas(students) if platform == "canvas" else _moodle(students)


def not_exported(scores: Scores) -> dict[str, str]:
    """Return the names of the submissions that exports leave out, each with the reason.

    A platform has one cell for each student and exercise, and may treat two spellings of a login as the same student.
    If two submissions would need the same cell, both are left out. A rejected archive is left out, because the grader
    does not know its student for certain, and Moodle refuses a whole table with one unknown login.
    """
    found = find_left_out(scores.submissions)
    rows = [row for row in scores.submissions if row.submission not in found]
    found |= {row.submission: row.reason for row in rows if row.status == "rejected" or not row.recipe}
    rows = [row for row in rows if row.submission not in found]
    names: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        names[login(row.student)].add(same_name(row.student))
    for row in rows:
        if len(alike := names[login(row.student)]) > 1:
            found[row.submission] = f"A platform would treat {', '.join(sorted(alike))} as the same student."
    return found


def csv_bytes(rows: Iterable[Sequence[str]], *, mark: bool = False, delimiter: str = ",") -> bytes:
    """Return rows of cells as CSV (RFC 4180) in UTF-8, with quotes around each cell.

    mark: whether the result begins with a byte order mark.
    """
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet treats as a formula, with codes instead of hidden characters.

    An apostrophe is put before each formula, also before a formula after a semicolon, a tab or a line feed. If there is
    an apostrophe already, a second one is added, so that two different texts never become equal.
    """
    return _FORMULA.sub(r"\1'", visible(text))


def number(value: float | None) -> str:
    """Return points as the text of a cell, or "" if the points are open."""
    return "" if value is None else points(value)


def canvas_name(student: str) -> str:
    """Return a student's name for the first cell of a row, changed if it could mark the row of maximum points."""
    return cell(student).replace("Points Possible", "Points_Possible")


def _canvas(students: Students) -> bytes:
    """Return a table that Canvas can import into its gradebook. Students are found by login; an empty cell is no grade.

    The table has no byte order mark, because the import would read the mark as a part of the first heading.
    """
    recipes = exercises_of(students)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(cell, recipes)]
    most = ["    Points Possible", "", "", "", "", *("100" for _ in recipes)]
    rows = []
    for student, found in students.items():
        totals = ["" if (row := found.get(recipe)) is None else number(row.total) for recipe in recipes]
        rows.append([canvas_name(student), "", "", cell(student), "", *totals])
    return csv_bytes([header, most, *rows])


def _moodle(students: Students) -> bytes:
    """Return a table that Moodle can import, with a grade and a feedback for each exercise.

    If the grade is open, the cell is "-", which Moodle reads as no grade. Moodle would read an empty cell in a new
    column as 0.
    """
    recipes, rows = exercises_of(students), []
    header = ["username", *(cell(words) for one in recipes for words in (one, f"{one} feedback"))]
    for student, found in students.items():
        cells = [cell(student)]
        for recipe in recipes:
            row = found.get(recipe)
            cells += ["-", ""] if row is None else [number(row.total) or "-", cell(feedback(row))]
        rows.append(cells)
    return csv_bytes([header, *rows])


def feedback(row: SubmissionScore) -> str:
    """Return the lost points with the reasons as one text. Escape the text, because Moodle shows it as HTML."""
    lost = [
        f"{check.title} ({points(check.points)} of {points(check.max)}): {check_words(check)}"
        for criterion in row.criteria.values()
        for check in criterion.checks
        if check.outcome != "passed" or check.comment
    ]
    words = " ".join(filter(None, [late_words(row.late), row.reason, *lost])) or "You got all points."
    return html.escape(clip(words, _FEEDBACK_LIMIT), quote=False)


def check_words(check: RubricItem) -> str:
    """Return the reason, the remedy and the instructor's comment of an item, as one text."""
    parts = (check.reason, check.remedy, check.comment and f"Your instructor: {check.comment}")
    return visible(" ".join(part for part in parts if part))
