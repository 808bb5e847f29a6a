"""`gradebook.csv`: one row a submission, in a form that spreadsheets open as it stands."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from grader.report.text import points, visible
from grader.score.verdict import Criterion, Scores, SubmissionScore, criteria_in

# Between these and the flags stand the criteria of the class.
COLUMNS = ("student", "recipe", "submission", "status", "total")

# Where a spreadsheet begins a cell, and finds what it computes there: a sign, in ASCII or in the full-width forms
# that East Asian editions accept, behind anything that it takes away first (blanks, quotes). A cell begins at the
# start of the text, and inside it too: spreadsheets that split at semicolons or tabs take the quotes around later
# cells for text. Quotes keep commas together in every reader.
_FORMULA = re.compile(r"""(^|[;\t\n])(?=(?:[^\S\t\n]|["'])*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def gradebook(scores: Scores) -> bytes:
    """Return the gradebook: RFC 4180, UTF-8 with the byte order mark without which Excel misreads it.

    What is open is an empty cell, never 0. Text that a spreadsheet would compute, such as a student called
    `=1+1`, has an apostrophe before it; see `cell`.
    """
    criteria = criteria_in(scores.submissions)
    rows = (_row(row, criteria) for row in scores.submissions)
    return csv_bytes([(*COLUMNS, *criteria, "flags"), *rows], mark=True)


def csv_bytes(rows: Iterable[Sequence[str]], *, mark: bool = False) -> bytes:
    """Return rows of cells as CSV (RFC 4180) in UTF-8, every cell quoted, with a byte order mark if asked."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet computes, with hidden characters spelled out.

    An apostrophe stands before each formula, the one after a semicolon, a tab or a line feed included; one that
    was there already gets another, so that two names never become the same.
    """
    return _FORMULA.sub(r"\1'", visible(text))


def number_cell(value: float | None) -> str:
    """Return points as a cell; open ones are empty."""
    return "" if value is None else points(value)


def _row(row: SubmissionScore, criteria: Iterable[Criterion]) -> list[str]:
    earned = [row.criteria[name].points if name in row.criteria else None for name in criteria]
    flags = " | ".join(f"{flag.id}: {flag.message}" for flag in row.flags)
    return [
        *map(cell, (row.student, row.recipe, row.submission, row.status)),
        *map(number_cell, (row.total, *earned)),
        cell(flags),
    ]
