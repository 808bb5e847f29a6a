"""Write the scores as tables: `gradebook.csv`, and the tables that Canvas and Moodle import."""

import csv
import html
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from grader.report.text import clipped, points
from grader.score.identity import left_out, login, same_name
from grader.score.verdict import Check, Scores, SubmissionScore, criteria_in
from harness.submission.document import visible

Platform = Literal["canvas", "moodle"]
GRADEBOOK = "gradebook.csv"
COLUMNS = ("student", "recipe", "submission", "status", "total")  # then the criteria, then the flags
_FEEDBACK_LIMIT = 4000  # characters

# Where a spreadsheet would see a formula: a sign, in ASCII or in the full-width forms that East Asian editions
# accept, behind anything that it strips first (blanks, quotes). A cell begins at the start of the text, and also
# inside it: spreadsheets that split at semicolons or tabs take the quotes around later cells for text.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return `gradebook.csv`: one row a submission, RFC 4180, UTF-8 with the byte order mark that Excel needs.

    It leaves out the submissions of `left_out`. Open points are an empty cell, never 0. Text that a spreadsheet would
    compute is defused; see `cell`.
    """
    criteria = criteria_in(scores.submissions)
    rows, outside = [], left_out(scores.submissions)
    for row in scores.submissions:
        if row.submission in outside:
            continue
        earned = [row.criteria[name].points if name in row.criteria else None for name in criteria]
        flags = " | ".join(f"{flag.id}: {flag.message}" for flag in row.flags)
        texts = map(cell, (row.student, row.recipe, row.submission, row.status))
        rows.append([*texts, *map(_number, (row.total, *earned)), cell(flags)])
    return csv_bytes([(*COLUMNS, *criteria, "flags"), *rows], mark=True)


def export(scores: Scores, platform: Platform) -> bytes:
    """Return the table that a platform imports: one row a student, one column a recipe.

    A student's name stands where the platform looks for the login. Open points are no grade, never 0. The submissions
    of `not_exported` are left out.
    """
    outside = not_exported(scores)
    rows = [row for row in scores.submissions if row.submission not in outside]
    students: _Students = {}
    for row in sorted(rows, key=lambda row: (same_name(row.student), row.recipe)):
        students.setdefault(same_name(row.student), {})[row.recipe] = row
    recipes = sorted({row.recipe for row in rows})
    return _canvas(recipes, students) if platform == "canvas" else _moodle(recipes, students)


def not_exported(scores: Scores) -> dict[str, str]:
    """Return which submissions have no place in an export, and why.

    A platform has one cell for a student and a recipe, and takes some names for one: where two submissions would have
    one cell, neither gets it. Of a rejected archive only the sender says whose it is; Moodle refuses a whole file for a
    login that it does not know.
    """
    found = left_out(scores.submissions)
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


def csv_bytes(rows: Iterable[Sequence[str]], *, mark: bool = False) -> bytes:
    """Return rows of cells as CSV (RFC 4180) in UTF-8, every cell quoted; `mark` puts a byte order mark first."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet computes, with hidden characters spelled out.

    An apostrophe stands before each formula, also behind a semicolon, a tab or a line feed. If one is there
    already, it gets another, so two names never become the same.
    """
    return _FORMULA.sub(r"\1'", visible(text))


def _number(value: float | None) -> str:
    return "" if value is None else points(value)


_Students = dict[str, dict[str, SubmissionScore]]  # by student and recipe


def _canvas(recipes: Sequence[str], students: _Students) -> bytes:
    """Return a file for Canvas' gradebook import: the login identifies a student, an empty cell is no grade.

    It has no byte order mark: the import takes one for a part of the first heading.
    """
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(cell, recipes)]
    most = ["    Points Possible", "", "", "", "", *("100" for _ in recipes)]
    rows = []
    for student, found in students.items():
        # Canvas takes a row whose first cell holds these words for the row of maximum points.
        name = cell(student).replace("Points Possible", "Points_Possible")
        totals = [_number(found[recipe].total) if recipe in found else "" for recipe in recipes]
        rows.append([name, "", "", cell(student), "", *totals])
    return csv_bytes([header, most, *rows])


def _moodle(recipes: Sequence[str], students: _Students) -> bytes:
    """Return a file for Moodle's grade import: a grade and a feedback for each recipe.

    An open grade is "-", which Moodle reads as no grade; it turns an empty cell of a new grade item into 0.
    """
    header = ["username", *(cell(words) for one in recipes for words in (one, f"{one} feedback"))]
    rows = []
    for student, found in students.items():
        cells = [cell(student)]
        for recipe in recipes:
            row = found.get(recipe)
            cells += ["-", ""] if row is None else [_number(row.total) or "-", cell(_feedback(row))]
        rows.append(cells)
    return csv_bytes([header, *rows])


def _feedback(row: SubmissionScore) -> str:
    """Return what was lost and why in one text, escaped because Moodle shows it as HTML."""
    lost = [
        f"{check.title} ({points(check.points)} of {points(check.max)}): {_words(check)}"
        for criterion in row.criteria.values()
        for check in criterion.checks
        if check.outcome != "passed" or check.comment
    ]
    words = " ".join([*([row.reason] if row.reason else []), *lost]) or "Every check passed."
    return html.escape(clipped(words, _FEEDBACK_LIMIT), quote=False)


def _words(check: Check) -> str:
    parts = (check.reason, check.remedy, check.comment and f"Your instructor: {check.comment}")
    return visible(" ".join(part for part in parts if part))
