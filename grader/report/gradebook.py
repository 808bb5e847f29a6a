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
COLUMNS = ("student", "recipe", "submission", "status", "total")  # then criteria, limit, lateness, decision, flags
_FEEDBACK_LIMIT = 4000  # characters

# Places where a spreadsheet would see a formula: before a sign, in ASCII or in the full-width form that East Asian
# editions accept. A spreadsheet strips spaces and quotes before the sign. A cell may also begin inside the text:
# spreadsheets that split at semicolons or tabs read the quotes around later cells as text.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return `gradebook.csv`: one row per submission, RFC 4180, UTF-8 with the byte order mark that Excel needs.

    It leaves out the submissions of `find_left_out`. Open points are an empty cell, never 0. The total is the sum of
    the criteria minus `limit` (removed by a gate of the rubric) and lateness, unless the instructor has `decided` it.
    Text cannot become a formula; see `cell`.
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
    """Return the rows of `gradebook` as strict JSON, a list of objects. Open points are null; text is unchanged."""
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
    """Return the scores for research, without names, without texts that people wrote, and without times.

    The number of late days stays. With the same secret, a student always has the same pseudonym. Without the secret,
    nobody can compute the pseudonym (HMAC, RFC 2104).
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


# The row of each exercise of each student, sorted; None if a left-out submission waits for the instructor.
Students = Mapping[str, Mapping[str, SubmissionScore | None]]


def exercises_of(students: Students) -> list[str]:
    """Return every exercise that somebody handed in, without exercises whose submissions are all left out."""
    return sorted({name for found in students.values() for name, row in found.items() if row is not None})


def students_of(scores: Scores) -> Students:
    """Return the rows that count, by student and exercise. Every export is made from this table."""
    outside = not_exported(scores)
    found: dict[str, dict[str, SubmissionScore | None]] = {}
    for row in sorted(scores.submissions, key=lambda row: (same_name(row.student), row.recipe)):
        if row.submission not in outside:
            found.setdefault(same_name(row.student), {})[row.recipe] = row
    for row in scores.submissions:
        if row.submission in outside and (own := found.get(same_name(row.student))) is not None:
            # A file that names no exercise may be for any of them.
            for exercise in [row.recipe] if row.recipe else [*own]:
                if (other := own.get(exercise)) is None or not other.is_there:
                    own[exercise] = None
    return found


def grade(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> float | None:
    """Return the mean of a student's totals in these exercises, or None while one of them waits for the instructor.

    A missing exercise counts 0, and an excused one does not count. A student who handed in none of them has no grade.
    """
    exercises = [one for one in exercises if (row := found.get(one)) is None or row.status not in UNCOUNTED]
    rows = [found[exercise] for exercise in exercises if exercise in found]
    rows = [row for row in rows if row is None or row.is_there]
    known = [row for row in rows if row is not None and row.status != "not judged"]
    if not rows or len(known) < len(rows):
        return None
    return sum(row.total or 0.0 for row in known) / len(exercises)


def is_excused(found: Mapping[str, SubmissionScore | None], exercises: Sequence[str]) -> bool:
    """Return whether a student is excused from all of these exercises. Ignore cases that only other students get."""
    rows = [found.get(exercise) for exercise in exercises]
    rows = [row for row in rows if row is None or row.status != "not drawn"]
    return bool(rows) and all(row is not None and row.status == "excused" for row in rows)


def export(scores: Scores, platform: GradebookPlatform) -> bytes:
    """Return the table that a platform imports: one row per student, one column per recipe.

    The student's name is in the column in which the platform looks for the login. Open points give no grade, never 0.
    The submissions of `not_exported` are left out.
    """
    students = students_of(scores)
    return _canvas(students) if platform == "canvas" else _moodle(students)


def not_exported(scores: Scores) -> dict[str, str]:
    """Return the submissions that exports leave out, with the reasons.

    A platform has one cell for a student and a recipe, and may treat two spellings as the same student. If two
    submissions would need the same cell, both are left out. Rejected archives are left out because only the sender is
    known, and Moodle refuses the whole file if it does not know a login.
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
    """Return rows of cells as CSV (RFC 4180) in UTF-8, every cell quoted; `mark` puts a byte order mark first."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet treats as a formula, with codes for hidden characters.

    An apostrophe goes before each formula, also after a semicolon, a tab or a line feed. If there is an apostrophe
    already, another is added, so that two names never become the same.
    """
    return _FORMULA.sub(r"\1'", visible(text))


def number(value: float | None) -> str:
    """Return points as the text of a cell; "" for open points."""
    return "" if value is None else points(value)


def canvas_name(student: str) -> str:
    """Return a name for the first cell of Canvas' table, so that it cannot look like the row of maximum points."""
    return cell(student).replace("Points Possible", "Points_Possible")


def _canvas(students: Students) -> bytes:
    """Return a file for Canvas' gradebook import. The login identifies a student; an empty cell means no grade.

    The file has no byte order mark, because the import would read the mark as a part of the first heading.
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
    """Return a file for Moodle's grade import, with a grade and feedback for each recipe.

    An open grade is "-", which Moodle reads as no grade. Moodle would turn an empty cell of a new grade item into 0.
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
    """Return the lost points and the reasons as one text, escaped because Moodle shows it as HTML."""
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
