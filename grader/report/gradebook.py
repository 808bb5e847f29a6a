"""Write the scores as tables: `gradebook.csv`, and the formats that learning platforms import."""

import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence

from grader.report import Format
from grader.report.text import clipped, file_stem, points, visible
from grader.score.verdict import Check, Criterion, Scores, SubmissionScore, criteria_in
from harness.errors import UserError

GRADEBOOK = "gradebook.csv"
COLUMNS = ("student", "recipe", "submission", "status", "total")  # then the criteria, then the flags
_FULL_MARKS = 100
_FEEDBACK_LIMIT = 4000  # characters

# Where a spreadsheet would see a formula: a sign, in ASCII or in the full-width forms that East Asian editions
# accept, behind anything that it strips first (blanks, quotes). A cell begins at the start of the text, and also
# inside it: spreadsheets that split at semicolons or tabs take the quotes around later cells for text.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return `gradebook.csv`: one row a submission, RFC 4180, UTF-8 with the byte order mark that Excel needs.

    Open points are an empty cell, never 0. Text that a spreadsheet would compute is defused; see `cell`.
    """
    criteria = criteria_in(scores.submissions)
    rows = (_row(row, criteria) for row in scores.submissions)
    return csv_bytes([(*COLUMNS, *criteria, "flags"), *rows], mark=True)


def export(scores: Scores, format: Format) -> list[tuple[str, bytes]]:
    """Return the files of an export as (file name, content).

    csv: `gradebook.csv`, as in the reports. gradescope: `<submission>.results.json` for each submission that has
    a total. canvas, moodle: one file with one row a student and one column a recipe; a student's name stands where
    the platform looks for the login. Open points are never 0. These two leave out what `left_out` returns. Raises
    `UserError` if a student handed in one recipe twice, because a platform has one cell for both, or if a platform
    would take the names of two students for one.
    """
    if format == "csv":
        return [(GRADEBOOK, gradebook(scores))]
    if format == "gradescope":
        return [
            (f"{file_stem(row.submission)}.results.json", _gradescope(row))
            for row in scores.submissions
            if row.total is not None
        ]
    return [("canvas.csv", _canvas(scores)) if format == "canvas" else ("moodle.csv", _moodle(scores))]


def left_out(scores: Scores, format: Format) -> list[SubmissionScore]:
    """Return the submissions that have a total and still no row in an export: the rejected ones.

    Student and recipe of a rejected archive are whatever its sender wrote: perhaps another student's login, whose
    grade it would change, or a login that the platform does not know and for which it refuses the whole file.
    """
    if format not in ("canvas", "moodle"):
        return []
    return [row for row in scores.submissions if row.status == "rejected"]


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


def _row(row: SubmissionScore, criteria: Iterable[Criterion]) -> list[str]:
    earned = [row.criteria[name].points if name in row.criteria else None for name in criteria]
    flags = " | ".join(f"{flag.id}: {flag.message}" for flag in row.flags)
    texts = map(cell, (row.student, row.recipe, row.submission, row.status))
    return [*texts, *map(_number, (row.total, *earned)), cell(flags)]


def _gradescope(row: SubmissionScore) -> bytes:
    """Return a `results.json` in the form of Gradescope's "Autograder Specifications".

    The score of the whole decides; a check's number is its place in the rubric.
    """
    tests = [
        _gradescope_test(criterion, f"{number}.{position}", check)
        for number, criterion in enumerate(criteria_in([row]), start=1)
        if criterion in row.criteria
        for position, check in enumerate(row.criteria[criterion].checks, start=1)
    ]
    result = {
        "score": row.total,
        "output": visible(row.reason or f"{points(row.total)} of {_FULL_MARKS} points."),
        "output_format": "text",
        "visibility": "after_published",
        "stdout_visibility": "hidden",
        "tests": tests,
    }
    return (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode()


def _gradescope_test(criterion: Criterion, number: str, check: Check) -> dict[str, object]:
    return {
        "name": f"{criterion}: {visible(check.title)}",
        "name_format": "text",
        "number": number,
        "score": check.points,
        "max_score": check.max,
        "status": check.outcome if check.outcome == "passed" else "failed",
        "output": _words(check),
        "output_format": "text",
        "visibility": "after_published",
    }


def _canvas(scores: Scores) -> bytes:
    """Return a file for Canvas' gradebook import: the login identifies a student, an empty cell is no grade.

    It has no byte order mark: the import takes one for a part of the first heading.
    """
    recipes, students = _table(scores)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(cell, recipes)]
    most = ["    Points Possible", "", "", "", "", *(str(_FULL_MARKS) for _ in recipes)]
    rows = []
    for student, found in students.items():
        # Canvas takes a row whose first cell holds these words for the row of maximum points.
        name = cell(student).replace("Points Possible", "Points_Possible")
        totals = [_number(_total(found.get(recipe))) for recipe in recipes]
        rows.append([name, "", "", cell(student), "", *totals])
    return csv_bytes([header, most, *rows])


def _moodle(scores: Scores) -> bytes:
    """Return a file for Moodle's grade import: a grade and a feedback for each recipe.

    An open grade is "-", which Moodle reads as no grade; it turns an empty cell of a new grade item into 0.
    """
    recipes, students = _table(scores)
    header = ["username", *(cell(words) for one in recipes for words in (one, f"{one} feedback"))]
    rows = []
    for student, found in students.items():
        cells = [cell(student)]
        for recipe in recipes:
            row = found.get(recipe)
            cells += [_number(_total(row)) or "-", cell(_feedback(row)) if row is not None else ""]
        rows.append(cells)
    return csv_bytes([header, *rows])


def _table(scores: Scores) -> tuple[list[str], dict[str, dict[str, SubmissionScore]]]:
    """Return the recipes that become columns, and for each student the submission by recipe; both sorted."""
    rows = [row for row in scores.submissions if row.status != "rejected"]
    recipes = sorted({row.recipe for row in rows})
    students: dict[str, dict[str, SubmissionScore]] = {}
    logins: dict[str, SubmissionScore] = {}
    for row in sorted(rows, key=lambda row: (row.student, row.recipe, row.submission)):
        other = logins.setdefault(_login(row.student), row)
        if other.student != row.student:
            raise UserError(
                f"A platform takes the student names of {clipped(other.submission, 80)} and"
                f" {clipped(row.submission, 80)} for one: keep one of them, score again, then export."
            )
        found = students.setdefault(row.student, {})
        if row.recipe in found:
            raise UserError(
                f"{clipped(row.student, 60)} handed in {clipped(row.recipe, 60)} twice,"
                f" {clipped(found[row.recipe].submission, 80)} and {clipped(row.submission, 80)}:"
                " keep one of them, score again, then export."
            )
        found[row.recipe] = row
    return recipes, students


def _login(student: str) -> str:
    """Return a name as platforms compare logins: without surrounding blanks, case and full-width forms.

    Otherwise "Ada " could take the grade of "ada".
    """
    return " ".join(unicodedata.normalize("NFKC", student).casefold().split())


def _total(row: SubmissionScore | None) -> float | None:
    return None if row is None else row.total


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
