"""Fill in the tables that Canvas and Moodle export, and name feedback files so that these platforms accept them.

A filled table contains only the rows and columns that the import needs. So the import can neither delete other grades
nor restore old grades. Grades that other people entered stay unchanged. docs/grading.md, section Export, links to
descriptions of the formats.
"""

import csv
import html
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.report.gradebook import Students, canvas_name, cell, csv_bytes, exercises_of, feedback, grade, is_excused
from grader.report.text import clip, file_stem, points
from grader.score.verdict import SubmissionScore
from harness.errors import UserError, printable
from harness.files import read_text
from harness.recipes.personal import login
from harness.submission.archive import deterministic_tar_gz

_LIMIT = 64 * 1024 * 1024
# Columns of exported tables that may contain the login by which we know a student.
_LOGINS = ("SIS Login ID", "SIS User ID", "Email address", "Username", "ID number")
_NO_GRADES = (
    "ex",
    "n/a",
)  # in Canvas, "EX" means excused, and "N/A" means that the student does not have the assignment
_TITLE_AND_ID = re.compile(r"(.*) \([0-9]+\)", re.DOTALL)
_PARTICIPANT = re.compile(r"[^0-9=+@-]*([0-9]+)")
# Canvas names a downloaded file "lovelaceada_LATE_<user>_<file>_<name>". When you upload feedback files, Canvas looks
# for both numbers in their names.
_CANVAS_FILE = re.compile(r".*?_[0-9]+_[0-9]+_.+", re.DOTALL)
_ROW = dict[str, str]  # a row of an exported table, by heading
Names = Mapping[str, Sequence[str]]


# The grades that earlier exports wrote, by column and login.
Given = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Filled:
    """A filled table, which a platform can import.

    table: the bytes of the table.
    places: for each student who gets a grade, the student's row in the exported table.
    notes: a sentence for each student or exercise that is missing in the table.
    given: the grades that we wrote, by column and login.
    changes: a line for each cell that the import will change.
    kept: a sentence for each grade that other people entered, and that the import will not change.
    """

    table: bytes
    places: Mapping[str, _ROW]
    notes: Sequence[str]
    given: Given
    changes: Sequence[str]
    kept: Sequence[str]


class _Cells:
    """Decides which cells an export may fill, and collects lines about changed and unchanged cells."""

    def __init__(self, given: Given, *, overwrite: bool) -> None:
        self._before, self._overwrite = given, overwrite
        self.given: dict[str, dict[str, str]] = {}
        self.changes: list[str] = []
        self.kept: list[str] = []

    def fill(self, student: str, row: _ROW, ours: Mapping[str, str]) -> bool:
        """Return whether an export may fill in these cells in a student's row. If it may, record the new texts.

        ours: the new text of each cell, by column.
        """
        if not all(self._may_fill(student, name, row[name], text) for name, text in ours.items()):
            return False
        for name, text in ours.items():
            self.given.setdefault(name, {})[login(student)] = text
            if not _same(row[name], text):
                before = clip(row[name].strip(), 60) or "nothing"
                self.changes.append(f"{printable(student)}, {printable(name)}: {before} -> {clip(text, 60)}")
        return True

    def _may_fill(self, student: str, column: str, there: str, ours: str) -> bool:
        there, who = there.strip(), f"{printable(student)}, {printable(column)}"
        if there.casefold() in _NO_GRADES:
            self.kept.append(
                f"{who}: kept {printable(there)}. To write {ours}, first delete {printable(there)} on the platform."
            )
            return False
        own = self._before.get(column, {}).get(login(student))
        if there in ("", "-") or _same(there, ours) or self._overwrite or (own is not None and _same(there, own)):
            return True
        self.kept.append(
            f"{who}: kept {clip(there, 60)}, because no export wrote this. To write {clip(ours, 60)}, use --overwrite."
        )
        return False


def _same(one: str, other: str) -> bool:
    """Return whether two cells contain the same number, or the same text if formatting is ignored."""
    try:
        return round(float(one.replace(",", ".")), 4) == round(float(other.replace(",", ".")), 4)
    except ValueError:
        words = (" ".join(re.sub("<[^>]*>", " ", html.unescape(text)).split()) for text in (one, other))
        return len({*words}) == 1


def fill_canvas(
    students: Students,
    path: Path,
    *,
    column: str | None = None,
    exercises: Sequence[str] = (),
    names: Names | None = None,
    given: Given | None = None,
    overwrite: bool = False,
) -> Filled:
    """Fill in the gradebook that Canvas exported to `path`. Points are scaled to the maximum points of each column.

    given: the grades that earlier exports wrote; these are replaced.
    overwrite: whether to replace also grades that other people entered. `EX` and `N/A` are never replaced.
    column: the heading of the column to fill, with or without Canvas' number. By default, each exercise fills the
        column with its name; if no column has the name of an exercise, the gradebook must have only one column.
    exercises: the exercises whose mean fills `column` (see `grade`). By default, the only exercise that was handed in.
    names: further names of each student on the platform, by login.
    Raises `UserError` if the file is not a gradebook, or if not exactly one column matches.
    """
    header, rows, delimiter = _read(path, ("ID", "Section"), "in Canvas, open Grades and choose Export")
    most: _ROW = next((row for row in rows if "Points Possible" in row[header[0]]), {})
    person = header[: header.index("Section") + 1]
    columns = _columns(path, header[len(person) :], most, students, column, exercises)
    found, notes = _match_students(path, [row for row in rows if row["ID"].strip().isdigit()], students, names or {})
    filling = {one for counting in columns.values() for one in counting}
    notes += [
        f"No column has the name of {printable(one)}: add the exercise with --exercise."
        for one in exercises_of(students)
        if one not in filling
    ]
    filled, places, cells = [], {}, _Cells(given or {}, overwrite=overwrite)
    for student, row in found.items():
        ours = {
            name: text
            for name, counting in columns.items()
            if (text := _canvas_grade(students[student], counting, most.get(name, "")))
            and cells.fill(student, row, {name: text})
        }
        if not ours:
            continue
        places[student] = row
        # Canvas finds the student by the number in the column ID, so we may escape the other cells.
        texts = [row[name] if name == "ID" else cell(row[name]) for name in person]
        texts[0] = canvas_name(row[person[0]])
        # For a column that we do not fill, repeat the old grade, because an empty cell would delete it.
        filled.append([*texts, *(ours.get(name, row[name]) for name in columns)])
    ceiling = ["    Points Possible", *("" for _ in person[1:]), *(most.get(name, "") for name in columns)]
    table = csv_bytes([[*person, *columns], ceiling, *filled], delimiter=delimiter)
    return Filled(table, places, notes, cells.given, cells.changes, cells.kept)


def fill_moodle(
    students: Students,
    path: Path,
    *,
    exercises: Sequence[str] = (),
    names: Names | None = None,
    given: Given | None = None,
    overwrite: bool = False,
) -> Filled:
    """Fill in the grading worksheet that Moodle exported to `path`. Grades are scaled to the maximum grade.

    exercises, names, given, overwrite: as for `fill_canvas`. If another person wrote the comment on a student's work,
    the comment and the grade stay unchanged, unless `overwrite` is true. Raises `UserError` if the file is not a
    worksheet, or if the assignment uses a scale instead of points.
    """
    kept = ("Identifier", "Last modified (grade)")  # the import compares these columns, so they stay unchanged
    how = "set Moodle to English, open the assignment's submissions and choose Download grading worksheet"
    header, rows, delimiter = _read(path, (*kept, "Grade"), how)
    ceiling = next((name for name in header if name.casefold() == "maximum grade"), None)
    if ceiling is None:
        raise UserError(f"{path} has no column Maximum grade: give the assignment points, not a scale, and {how}.")
    counting = _counting_exercises(students, exercises)
    found, notes = _match_students(
        path, [row for row in rows if _PARTICIPANT.fullmatch(row["Identifier"])], students, names or {}
    )
    filled, places, cells = [], {}, _Cells(given or {}, overwrite=overwrite)
    for student, row in found.items():
        value = grade(students[student], counting)
        if value is None:
            continue
        graded = [one for name in counting if (one := students[student].get(name)) is not None]
        words = [feedback(one) if len(counting) == 1 else f"{one.recipe}: {feedback(one)}" for one in graded]
        changed = {"Grade": _scale_grade(value, row[ceiling]), "Feedback comments": cell(" | ".join(words))}
        if not cells.fill(student, row, {name: text for name, text in changed.items() if name in header}):
            continue
        places[student] = row
        filled.append([row[name] if name in kept else changed.get(name, cell(row[name])) for name in header])
    table = csv_bytes([header, *filled], delimiter=delimiter)
    return Filled(table, places, notes, cells.given, cells.changes, cells.kept)


def canvas_files(
    students: Students, filled: Filled, page: Callable[[SubmissionScore], str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each feedback file that you can upload to Canvas.

    A feedback file must have the name of the submitted file, so it is a tarball, too. A submission that did not come
    from Canvas' bulk download gets no feedback file.
    """
    for student in filled.places:
        for row in students[student].values():
            name = "" if row is None else row.submission.rpartition("/")[2]
            if row is not None and _CANVAS_FILE.fullmatch(name):
                shown = page(row).encode()
                yield f"{name}.tar.gz", deterministic_tar_gz({f"{file_stem(row.submission)}.html": shown})


def moodle_files(filled: Filled, page: Callable[[str], str]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each feedback file that you can upload to Moodle, one file per student."""
    for student, row in filled.places.items():
        number = re.sub("[^0-9]", "", row["Identifier"])
        # Moodle splits the folder name at each "_", and finds the student by the number.
        name = re.sub(r"[^\w .-]|_", " ", row.get("Full name", "")).strip(" .") or "Participant"
        yield f"{name}_{number}_assignsubmission_file_/feedback.html", page(student).encode()


def _read(path: Path, needed: Sequence[str], how: str) -> tuple[list[str], list[_ROW], str]:
    """Return the headings, the rows and the delimiter of an exported table. `how` says how to export the table."""
    text = read_text(path, _LIMIT, missing=how, too_large="is it a table?").removeprefix("\ufeff")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    csv.field_size_limit(_LIMIT)  # Moodle's worksheet may contain long texts by students
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise UserError(f"{path} is not a CSV table ({error}): {how}.") from None
    if missing := [name for name in needed if name not in header]:
        raise UserError(f"{path} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}: {how}.")
    width = len(header)
    return header, [dict(zip(header, [*row, *[""] * width][:width], strict=True)) for row in rows], delimiter


def _columns(
    path: Path, behind: Sequence[str], most: _ROW, students: Students, column: str | None, exercises: Sequence[str]
) -> dict[str, list[str]]:
    """Return the columns to fill. The value of each column is the list of exercises that count in it."""
    assignments = [name for name in behind if _TITLE_AND_ID.fullmatch(name) and "read only" not in most.get(name, "")]
    titles = {name: _TITLE_AND_ID.sub(r"\1", name) for name in assignments}
    if column is None and not exercises:
        alike = {
            name: [one]
            for name in titles
            for one in exercises_of(students)
            if one.casefold() == titles[name].casefold()
        }
        if alike and len(set(map(str, alike.values()))) == len(alike):
            return alike
    fits = [name for name in titles if column in (None, name, titles[name])]
    if len(fits) != 1:
        fit = "no column matches" if not fits else f"{len(fits)} columns match"
        listed = ", ".join(map(printable, titles)) or "none"
        raise UserError(f"{path}: {fit}: choose the column with --column. The columns are: {listed}.")
    return {fits[0]: _counting_exercises(students, exercises)}


def _counting_exercises(students: Students, exercises: Sequence[str]) -> list[str]:
    """Return the exercises that count in every student's mean: `exercises`, or if it is empty, the only exercise."""
    known = exercises_of(students)
    for one in exercises:
        if one not in known:
            raise UserError(f"Nobody handed in {printable(one)}: use --exercise with one of these: {', '.join(known)}.")
    if not exercises and len(known) != 1:
        raise UserError(f"Name each exercise that counts with --exercise. The exercises are: {', '.join(known)}.")
    return list(exercises or known)


def _match_students(
    path: Path, rows: Sequence[_ROW], students: Students, names: Names
) -> tuple[dict[str, _ROW], list[str]]:
    """Return the row of each student, and a sentence for each student who does not match exactly one row."""
    index = defaultdict(set)
    for place, row in enumerate(rows):
        for name in _LOGINS:
            if key := login(row.get(name, "")):
                index[key].add(place)
    places = {
        student: set().union(*(index[login(name)] for name in (student, *names.get(student, ()))))
        for student in students
    }
    claims = Counter(place for found in places.values() for place in found)
    matched, notes = {}, []
    for student, found in places.items():
        if len(found) == 1 and claims[min(found)] == 1:
            matched[student] = rows[min(found)]
        else:
            why = f"is not in {path}" if not found else f"matches several rows of {path}, or the row of another student"
            notes.append(f"{printable(student)} {why}.")
    return matched, notes


def _canvas_grade(found: Mapping[str, SubmissionScore | None], counting: Sequence[str], most: str) -> str:
    """Return the text of a student's cell: a grade, or "EX" (excused), or "" if there is no grade."""
    return "EX" if is_excused(found, counting) else _scale_grade(grade(found, counting), most)


def _scale_grade(value: float | None, most: str) -> str:
    """Scale a grade from 0 to 100 to the maximum of the column. Return the text of the cell, or "" for no grade."""
    if value is None:
        return ""
    found = re.fullmatch(r"([0-9]*)(?:[.,]([0-9]+))?", most.strip())  # platforms write 10.00 or 10,00
    if found is None:
        raise UserError(
            f"The column's maximum points are {printable(most)}, which is not a number: export the table again."
        )
    ceiling = float(f"{found[1] or 0}.{found[2] or 0}") or 100.0
    return points(value * ceiling / 100)
