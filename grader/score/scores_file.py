"""Read and write `scores.json`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import ijson
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from grader.score.verdict import Scores, SubmissionScore
from harness.errors import UserError

SCORES = "scores.json"
_SCORES = TypeAdapter(Scores)
_ROW = TypeAdapter(SubmissionScore)
_NO_ROWS = b'"submissions": []'


def scores_json(scores: Scores) -> Iterator[bytes]:
    """Yield the content of `scores.json` in parts: strict JSON in UTF-8, one key per line."""
    start, end = _SCORES.dump_json(replace(scores, submissions=()), indent=1).split(_NO_ROWS)
    yield start + _NO_ROWS[:-1]
    for place, row in enumerate(scores.submissions):
        whole = replace(row, criteria={**row.criteria})  # load the criteria, which may still be on the disk
        lines = _ROW.dump_json(whole, indent=1).replace(b"\n", b"\n  ")
        yield (b",\n  " if place else b"\n  ") + lines
    yield (b"\n ]" if scores.submissions else b"]") + end + b"\n"


def head_before(out: Path) -> Scores | None:
    """Return the scores in a folder of reports without their rows, or None if the folder contains no scores.

    Raises `UserError` if the scores cannot be read.
    """
    with _explain_bad_scores(out), _open_scores(out) as file:
        if file is None:
            return None
        head = ijson.ObjectBuilder()
        for prefix, event, value in ijson.parse(file, use_float=True):
            if not prefix.startswith("submissions.item"):
                head.event(event, value)
        return _SCORES.validate_json(to_json(head.value))


def read_rows_before(out: Path) -> Iterator[SubmissionScore]:
    """Yield the rows of the scores in a folder of reports, and keep only one row in memory at a time.

    A folder without scores has no rows. Raises `UserError` if the scores cannot be read.
    """
    with _explain_bad_scores(out), _open_scores(out) as file:
        for row in () if file is None else ijson.items(file, "submissions.item", use_float=True):
            yield _ROW.validate_json(to_json(row))


@contextmanager
def _open_scores(out: Path) -> Iterator[BinaryIO | None]:
    """Open `scores.json`; yield None if it is missing, or if a power cut has left it empty or full of zeros."""
    try:
        file = (out / SCORES).open("rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        is_written = bool(file.read(1).strip(b"\0"))
        file.seek(0)
        yield file if is_written else None


def read_scores(out: Path) -> Scores:
    """Return the scores in a folder of reports. Raises `UserError` if there are no scores, or they cannot be read."""
    path = out / SCORES
    try:
        with _explain_bad_scores(out):
            return _SCORES.validate_json(path.read_bytes())
    except FileNotFoundError:
        below = ", ".join(str(one.parent) for one in sorted(out.glob(f"*/{SCORES}")))
        named = f"name one of these folders: {below}" if below else "name the folder that grader score wrote"
        raise UserError(f"There is no {path}: {named}.") from None


@contextmanager
def _explain_bad_scores(out: Path) -> Iterator[None]:
    """If the block raises a validation error, raise a `UserError` that says what to do."""
    try:
        yield
    except (ValidationError, ijson.JSONError):
        raise UserError(
            f"This version of the suite cannot read {out / SCORES}: use the version that wrote it, or move the folder"
            " away and score the class again."
        ) from None
