"""`grader export`: the scores in the formats that learning platforms import."""

import html
import json
import unicodedata
from collections.abc import Iterable

from grader.report.export_formats import Format
from grader.report.gradebook import cell, csv_bytes, gradebook, number_cell
from grader.report.page_names import page_stems
from grader.report.text import clipped, points, visible
from grader.score.verdict import Check, Criterion, Scores, SubmissionScore, criteria_in
from harness.errors import UserError

_FULL_MARKS = 100
_FEEDBACK_LIMIT = 4000  # characters


def export(scores: Scores, format: Format) -> list[tuple[str, bytes]]:
    """Return the files of an export as (file name, content).

    csv: `gradebook.csv`, the same as among the reports. gradescope: `<submission>.results.json` for each
    submission that has a total. canvas, moodle: one file, one row a student, one column a recipe; a student's
    name goes where the platform looks for the login. Nothing that is open is ever a 0. What was rejected is in
    neither of the two; `left_out` names it. Raises `UserError` where a student handed in one recipe twice, since
    a platform has one cell for both, and where it would take two names for one.
    """
    if format == "csv":
        return [("gradebook.csv", gradebook(scores))]
    if format == "gradescope":
        stems = page_stems(row.submission for row in scores.submissions)
        return [
            (f"{stems[row.submission]}.results.json", _gradescope(row))
            for row in scores.submissions
            if row.total is not None
        ]
    if format == "canvas":
        return [("canvas.csv", _canvas(scores))]
    return [("moodle.csv", _moodle(scores))]


def left_out(scores: Scores, format: Format) -> list[SubmissionScore]:
    """Return the submissions that an export has no row for, though they have a total: the rejected ones.

    Student and recipe of a rejected archive are whatever its sender wrote: another student's login, whose grade
    it would change, or one that the platform does not know, at which it refuses the whole file.
    """
    if format not in ("canvas", "moodle"):
        return []
    return [row for row in scores.submissions if row.status == "rejected"]


def _gradescope(row: SubmissionScore) -> bytes:
    """Return `results.json` as an autograder of Gradescope writes it (its "Autograder Specifications").

    The score is given for the whole and decides; a check's number is its place in the rubric.
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
    """Return a file for Canvas' gradebook import: the login identifies, an empty cell is no grade.

    No byte order mark: the import takes it for a part of the first heading.
    """
    recipes, students = _table(scores)
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *map(cell, recipes)]
    most = ["    Points Possible", "", "", "", "", *(str(_FULL_MARKS) for _ in recipes)]
    rows = [
        [
            _not_a_heading(cell(student)),
            "",
            "",
            cell(student),
            "",
            *(number_cell(_total(found.get(one))) for one in recipes),
        ]
        for student, found in students.items()
    ]
    return csv_bytes([header, most, *rows])


def _not_a_heading(student: str) -> str:
    """Return a name that Canvas cannot take for the row of the highest marks, which would change them all."""
    return student.replace("Points Possible", "Points_Possible")


def _moodle(scores: Scores) -> bytes:
    """Return a file for Moodle's grade import: a grade and a feedback for each recipe.

    An open grade is "-", which Moodle reads as no grade; it turns an empty cell of a new grade item into 0.
    Feedback is shown there as HTML, so that what is special in HTML is written as an entity.
    """
    recipes, students = _table(scores)
    header = ["username", *(cell(words) for one in recipes for words in (one, f"{one} feedback"))]
    rows = []
    for student, found in students.items():
        cells = [cell(student)]
        for one in recipes:
            row = found.get(one)
            cells += [number_cell(_total(row)) or "-", cell(_feedback(row)) if row is not None else ""]
        rows.append(cells)
    return csv_bytes([header, *rows])


def _table(scores: Scores) -> tuple[list[str], dict[str, dict[str, SubmissionScore]]]:
    """Return the recipes that are columns, and by student the submission for each recipe, both sorted."""
    rows = [row for row in scores.submissions if row.status != "rejected"]
    recipes = sorted({row.recipe for row in rows})
    students: dict[str, dict[str, SubmissionScore]] = {}
    logins: dict[str, SubmissionScore] = {}
    for row in sorted(rows, key=lambda row: (row.student, row.recipe, row.submission)):
        other = logins.setdefault(_login(row.student), row)
        if other.student != row.student:
            raise UserError(
                f"{clipped(other.submission, 80)} and {clipped(row.submission, 80)} are of students whose names a"
                " platform takes for one: keep one of them, score again, then export."
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
    """Return what is left of a name where blanks around it, capitals and full-width letters make no difference.

    A platform would give one student's grade to another who calls himself "Ada " for "ada".
    """
    return " ".join(unicodedata.normalize("NFKC", student).casefold().split())


def _total(row: SubmissionScore | None) -> float | None:
    return None if row is None else row.total


def _feedback(row: SubmissionScore) -> str:
    """Return what was lost and why, in one text."""
    lost = [
        f"{check.title} ({points(check.points)} of {points(check.max)}): {_words(check)}"
        for criterion in row.criteria.values()
        for check in criterion.checks
        if check.outcome != "passed" or check.comment
    ]
    words = " ".join([*([row.reason] if row.reason else []), *lost]) or "Every check passed."
    return html.escape(clipped(words, _FEEDBACK_LIMIT), quote=False)


def _words(check: Check) -> str:
    parts: Iterable[str] = (check.reason, check.remedy, check.comment and f"Your instructor: {check.comment}")
    return visible(" ".join(part for part in parts if part))
