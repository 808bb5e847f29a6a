"""Read the times of submission from the instructor's table, or from an export of Canvas, Moodle or Gradescope.

- The instructor's table is a CSV with two columns: a name and an ISO time.
- For Canvas, use the JSON from the submissions API (`GET .../assignments/:id/submissions?include[]=user`). The time is
  in `submitted_at` (https://canvas.instructure.com/doc/api/submissions.html).
- For Moodle, use the grading worksheet. The time is in "Last modified (submission)", in the time zone of the person who
  downloads the worksheet.
- For Gradescope, use the file of "Download Grades". The time is in "Submission Time".
"""

import csv
import io
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from harness.errors import UserError, printable
from harness.files import read_text

_BYTES = 64 * 1024 * 1024  # enough for the JSON of a large course, or a worksheet with texts that students wrote
_FORMS = "a CSV of names and times, Canvas' JSON of submissions, Moodle's grading worksheet or Gradescope's grades"
# The headings of columns with a time, and of columns with a name of the student, in lower case.
_TIMES = ("submitted_at", "submitted at", "submission time", "last modified (submission)", "time", "when", "date")
_NAMES = (
    "file", "name", "login", "student", "full name", "email", "email address", "e-mail", "sid", "id", "id number",
    "username", "identifier", "sis login id", "sis user id", "user_id", "who",
)  # fmt: skip
_FIRST, _LAST = ("first name", "given name"), ("last name", "surname", "family name")
# The formats of times: Moodle's English format with a 12-hour and a 24-hour clock, and Gradescope's format.
_WRITTEN = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%Y-%m-%d %H:%M:%S %z")
_OF_CANVAS = ("login_id", "sis_user_id", "name", "sortable_name", "email", "id")


@dataclass(frozen=True)
class TimeLine:
    """The content of a line: a time, and all names of the file or student. Messages show the first name."""

    names: tuple[str, ...]
    moment: datetime


class Times:
    """Times of submission, by file name or by any name of a student."""

    def __init__(
        self,
        told: Iterable[TimeLine] = (),
        source: str = "",
        people: Iterable[Sequence[str]] = (),
        exercises: Sequence[str] = (),
    ) -> None:
        """Store the times. `find` ignores a name that two students share, and a name with two different times.

        told: the lines of the table. source: the name of the table. people: all names of each student. exercises: the
        ids of exercises that may be at the end of file names.
        """
        self.exercises = exercises
        self.source = source
        self._by_name: dict[str, set[TimeLine]] = defaultdict(set)
        every = [*told]
        for one in every:
            for name in one.names:
                self._by_name[key_of(name)].add(one)
        self._waiting = {*every}
        students = [{key_of(name) for name in names if name} for names in people]
        owners: dict[str, int] = defaultdict(int)
        for keys in students:
            for key in keys:
                owners[key] += 1
        for keys in students:
            own = {key for key in keys if owners[key] == 1}
            found = set().union(*(self._by_name[key] for key in own if key in self._by_name))
            if len({one.moment for one in found}) == 1:
                self._by_name |= dict.fromkeys(own, found)

    @property
    def unused(self) -> list[str]:
        """The first name in each line that `find` has not used, sorted."""
        return sorted(one.names[0] for one in self._waiting)

    def find(self, names: Iterable[str]) -> datetime | None:
        """Return the time of the first of these names that has exactly one time, or None."""
        for name in names:
            found = self._by_name.get(key_of(name), set()) if name else set()
            if len({one.moment for one in found}) == 1:
                self._waiting -= found
                return next(iter(found)).moment
        return None


def key_of(name: str) -> str:
    """Return a key that ignores case and word order: "Lovelace, Ada" has the same key as "Ada Lovelace"."""
    words = unicodedata.normalize("NFC", name).casefold().replace(",", " ").split()
    return " ".join(sorted(words))


def read_times(path: Path, zone: tzinfo | None = None) -> list[TimeLine]:
    """Return the times in a file. zone: the time zone for times that do not name a time zone.

    Raises `UserError` that names a line, if the line has no valid time, if it has no time zone and `zone` is None, or
    if it contradicts another line.
    """
    text = read_text(path, _BYTES, missing="check its name", too_large="is this a table of times?")
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("[", "{"):
        return list(_of_canvas(path, text))
    found: list[TimeLine] = []
    lines: dict[str, TimeLine] = {}
    for number, names, when, is_own in _lines(path, text):
        moment = _moment(when, zone)
        if moment is None or not names:
            example = "2026-03-01T23:59:00" + ("" if zone else "+01:00")
            zoned = "" if zone else " with its time zone"
            raise UserError(f"{path}, line {number}: write a name and a time{zoned}, as in ada,{example}.")
        one = TimeLine(names, moment)
        if is_own and lines.setdefault(key_of(names[0]), one).moment != moment:
            raise UserError(f"{path}, line {number}: {printable(names[0])} has two times: write file names.")
        found.append(one)
    if not found:
        raise UserError(f"{path} has no times: write a name and a time in each line, as in ada,2026-03-01T23:59:00.")
    return found


def _lines(path: Path, text: str) -> Iterator[tuple[int, tuple[str, ...], str, bool]]:
    """Yield the number, the names and the time of each line, and whether the file is the instructor's own table."""
    header = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count), strict=True)
    csv.field_size_limit(_BYTES)
    headings: list[str] = []
    try:
        for cells in rows:
            row = [cell.strip() for cell in cells]
            if not any(row):
                continue
            if not headings:
                headings = [cell.casefold() for cell in row]
                if any(name in _TIMES for name in headings) or not re.search("[0-9]", "".join(row[1:2])):
                    continue
            if len(headings) <= 2 or not any(name in _TIMES for name in headings):
                yield rows.line_num, (row[0],) if row[0] else (), [*row, ""][1], True
            elif (when := _cell(headings, row, _TIMES)) not in ("", "-"):
                yield rows.line_num, tuple(_names(headings, row)), when, False
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num}: this is not a CSV table ({error}). Give {_FORMS}.") from None


def _names(headings: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    cells = dict(zip(headings, row, strict=False))
    parts = [next((cells[name] for name in part if cells.get(name)), "") for part in (_FIRST, _LAST)]
    names = [" ".join(filter(None, parts)), *(cells.get(name, "") for name in _NAMES)]
    # In this column, Moodle writes "Participant 123". In the names of its files, it writes only 123.
    names += [name.rpartition(" ")[2] for name in names if re.fullmatch(r"[^\d]+ \d+", name)]
    yield from dict.fromkeys(filter(None, names))


def _cell(headings: Sequence[str], row: Sequence[str], names: Sequence[str]) -> str:
    cells = dict(zip(headings, row, strict=False))
    return next((cells[name] for name in names if name in cells), "")


def _moment(written: str, zone: tzinfo | None) -> datetime | None:
    """Return an aware time in UTC, or None if the text is not a time."""
    moment = None
    for form in (None, *_WRITTEN):
        try:
            moment = datetime.fromisoformat(written) if form is None else datetime.strptime(written, form)
            break
        except ValueError:
            continue
    if moment is None or not re.search("[0-9]:[0-9]", written) or (moment.tzinfo is None and zone is None):
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _of_canvas(path: Path, text: str) -> Iterator[TimeLine]:
    """Yield the time of each submission in the JSON of Canvas' API."""
    wrong = f"{path} is not the JSON of Canvas' submissions API: save the list of submissions that the API returns."
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(wrong) from None
    rows = listed if isinstance(listed, list) else [listed]
    if not all(isinstance(row, dict) and "submitted_at" in row for row in rows):
        raise UserError(wrong)
    for row in rows:
        if (written := row["submitted_at"]) is None:  # nothing was handed in
            continue
        moment = _moment(str(written), UTC)
        if moment is None:
            raise UserError(f"{path}: {printable(str(written))} is not a time. {wrong}")
        yield TimeLine(tuple(_who(row)) or ("a submission without a name",), moment)


def _who(row: Mapping[str, Any]) -> Iterator[str]:
    user = row.get("user")
    about = user if isinstance(user, dict) else {}
    names = [*(about.get(name) for name in _OF_CANVAS), row.get("user_id"), row.get("anonymous_id")]
    yield from dict.fromkeys(str(name) for name in names if name not in (None, ""))
