"""Write the scores as tables: `gradebook.csv` and its JSON, and the tables that Canvas and Moodle import."""

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
COLUMNS = ("student", "recipe", "submission", "status", "total")  # then the criteria and what else decides
_FEEDBACK_LIMIT = 4000  # characters

# Where a spreadsheet would see a formula: a sign, in ASCII or in the full-width forms that East Asian editions
# accept, behind anything that it strips first (blanks, quotes). A cell begins at the start of the text, and also
# inside it: spreadsheets that split at semicolons or tabs take the quotes around later cells for text.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return `gradebook.csv`: one row a submission, RFC 4180, UTF-8 with the byte order mark that Excel needs.

    Submissions of `find_left_out` are not in it. Open points are an empty cell, never 0. The total is the sum of the
    criteria less `limit` (what a limit of the rubric keeps back) and lateness, unless `decided` says something else.
    Text that a spreadsheet would compute is defused; see `cell`.
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
    """Return the rows of `gradebook` as strict JSON, a list of objects. Open points are null, and text is as it was."""
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
    """Return the scores for research: no name, no text of a person, and no time but how many days late something is.

    A student has the same pseudonym wherever the same secret is used; without the secret nobody can compute it (HMAC,
    RFC 2104).
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
                provenance={},  # the digest of a tarball leads to its sender
                arrival=None,
                not_counting="yes" if row.not_counting else "",
            )
        )
    return replace(scores, submissions=tuple(sorted(rows, key=lambda row: row.submission)), decisions=(), changes=())


def _counting_rows(scores: Scores) -> list[SubmissionScore]:
    outside = find_left_out(scores.submissions)
    return [row for row in scores.submissions if row.submission not in outside and row.status != "not drawn"]


# The row of each exercise of each student, sorted; None if a submission is left out and so waits for the instructor.
Students = Mapping[str, Mapping[str, SubmissionScore | None]]


def exercises_of(students: Students) -> list[str]:
    """Return every exercise that somebody handed in; one that is only left out adds no column to an export."""
    return sorted({name for found in students.values() for name, row in found.items() if row is not None})


def students_of(scores: Scores) -> Students:
    """Return the table that every export is made from."""
    outside = not_exported(scores)
    found: dict[str, dict[str, SubmissionScore | None]] = {}
    for row in sorted(scores.submissions, key=lambda row: (same_name(row.student), row.recipe)):
        if row.submission not in outside:
            found.setdefault(same_name(row.student), {})[row.recipe] = row
    for row in scores.submissions:
        if row.submission in outside and (own := found.get(same_name(row.student))) is not None:
            # A file of which nothing is known may be for any exercise.
            for exercise in [row.recipe] if row.recipe else [*own]:
                if (other := own.get(exercise)) is None or not other.is_there:
                    own[exercise] = None
    return found


def grade(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> float | None:
    """Return the mean of a student's totals in these exercises, or None while one of them waits for the instructor.

    An exercise that was not handed in counts 0, one that is excused not at all. A student who handed in none of them
    has no grade.
    """
    exercises = [one for one in exercises if (row := found.get(one)) is None or row.status not in UNCOUNTED]
    rows = [found[exercise] for exercise in exercises if exercise in found]
    rows = [row for row in rows if row is None or row.is_there]
    known = [row for row in rows if row is not None and row.status != "not judged"]
    if not rows or len(known) < len(rows):
        return None
    return sum(row.total or 0.0 for row in known) / len(exercises)


def is_excused(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> bool:
    """Return whether a student is excused from all of these exercises that are the student's."""
    rows = [found.get(exercise) for exercise in exercises]
    rows = [row for row in rows if row is None or row.status != "not drawn"]
    return bool(rows) and all(row is not None and row.status == "excused" for row in rows)


def export(scores: Scores, platform: GradebookPlatform) -> bytes:
    """Return the table that a platform imports: one row a student, one column a recipe.

    A student's name stands where the platform looks for the login. Open points are no grade, never 0. The submissions
    of `not_exported` are left out.
    """
    students = students_of(scores)
    return _canvas(students) if platform == "canvas" else _moodle(students)


def not_exported(scores: Scores) -> dict[str, str]:
    """Return which submissions have no place in an export, and why.

    A platform has one cell for a student and a recipe, and takes some names for one: where two submissions would have
    one cell, neither gets it. Of a rejected archive only the sender says whose it is; Moodle refuses a whole file for a
    login that it does not know.
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
            found[row.submission] = f"A platform would take {', '.join(sorted(alike))} for one student."
    return found


def csv_bytes(rows: Iterable[Sequence[str]], *, mark: bool = False, delimiter: str = ",") -> bytes:
    """Return rows of cells as CSV (RFC 4180) in UTF-8, every cell quoted; `mark` puts a byte order mark first."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet computes, with hidden characters spelled out.

    An apostrophe stands before each formula, also behind a semicolon, a tab or a line feed. If one is there
    already, it gets another, so two names never become the same.
    """
    return _FORMULA.sub(r"\1'", visible(text))


def number(value: float | None) -> str:
    """Return points as a cell; open points are an empty one."""
    return "" if value is None else points(value)


def canvas_name(student: str) -> str:
    """Return a name as the first cell of Canvas' table: no student poses as the row of maximum points."""
    return cell(student).replace("Points Possible", "Points_Possible")


def _canvas(students: Students) -> bytes:
    """Return a file for Canvas' gradebook import: the login identifies a student, an empty cell is no grade.

    It has no byte order mark: the import takes one for a part of the first heading.
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
    """Return a file for Moodle's grade import: a grade and a feedback for each recipe.

    An open grade is "-", which Moodle reads as no grade; it turns an empty cell of a new grade item into 0.
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
    """Return what was lost and why in one text, escaped because Moodle shows it as HTML."""
    lost = [
        f"{check.title} ({points(check.points)} of {points(check.max)}): {check_words(check)}"
        for criterion in row.criteria.values()
        for check in criterion.checks
        if check.outcome != "passed" or check.comment
    ]
    words = " ".join(filter(None, [late_words(row.late), row.reason, *lost])) or "Every check passed."
    return html.escape(clip(words, _FEEDBACK_LIMIT), quote=False)


def check_words(check: RubricItem) -> str:
    """Return why a check earned what it did, how to earn the rest, and the instructor's comment, as one text."""
    parts = (check.reason, check.remedy, check.comment and f"Your instructor: {check.comment}")
    return visible(" ".join(part for part in parts if part))
