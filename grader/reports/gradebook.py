"""`gradebook.csv`: one row a submission, in a form that spreadsheets open as it stands."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

from grader.reports.text import points, visible
from grader.score import CRITERIA, Scores, SubmissionScore

COLUMNS = ("student", "recipe", "submission", "status", "total", *CRITERIA, "flags")

# What makes a spreadsheet compute a cell instead of showing it, in ASCII and in the full-width forms that
# East Asian editions accept; an apostrophe before it as well, so that `text_of_cell` can undo it.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def gradebook(scores: Scores) -> bytes:
    """Return the gradebook: RFC 4180, UTF-8 with the byte order mark without which Excel misreads it.

    What is open is an empty cell, never 0. Text that a spreadsheet would compute, such as a student called
    `=1+1`, has an apostrophe before it; see `text_of_cell`.
    """
    return csv_bytes([COLUMNS, *map(_row, scores.submissions)], mark=True)


def csv_bytes(rows: Iterable[Sequence[str]], *, mark: bool = False) -> bytes:
    """Return rows of cells as CSV (RFC 4180) in UTF-8, with a byte order mark if asked."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8-sig" if mark else "utf-8")


def cell(text: str) -> str:
    """Return a text as a cell that no spreadsheet computes, with hidden characters spelled out."""
    shown = visible(text)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def text_of_cell(content: str) -> str:
    """Undo the apostrophe of `cell`: of `'=1+1`, return `=1+1`."""
    return content[1:] if content.startswith("'") and _FORMULA.match(content) else content


def number_cell(value: float | None) -> str:
    """Return points as a cell; open ones are empty."""
    return "" if value is None else points(value)


def _row(row: SubmissionScore) -> list[str]:
    criteria = [row.criteria[name].points if name in row.criteria else None for name in CRITERIA]
    flags = "; ".join(f"{flag.id}: {flag.message}" for flag in row.flags)
    return [
        *map(cell, (row.student, row.recipe, row.submission, row.status)),
        *map(number_cell, (row.total, *criteria)),
        cell(flags),
    ]
