"""Read the roster of a course, and compare it with the submissions.

Find missing work and students who are not on the roster, copy the results of groups, and compare seeds.
"""

import csv
import io
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import click

from grader.intake.folder import Sender
from grader.score.identity import OTHER_NAME, OTHER_SEED, STRANGER, Student, fits, letters_of, look_alike_key
from grader.score.verdict import Flag, RowStatus, SubmissionScore
from harness.errors import UserError, printable
from harness.files import read_text
from harness.recipes.cases import Case
from harness.recipes.personal import login
from harness.submission.archive import student_name

GROUP = "group"  # the id of a flag
EVERY = "all"  # in `excused`, this word excuses a student from all exercises
_ANYBODY = "participant"  # with anonymous grading, Moodle gives this name to each student
_LIMIT = 16 * 1024 * 1024
# Headings of columns that may contain logins, the best first. If a platform exports no login, the email address is
# used.
_LOGINS = ("login", "sis login id", "username", "email", "email address", "e-mail", "sid", "id number")
_IDS = ("id", "sis user id", "sis login id", "username", "sid", "id number", "identifier")
_NAMES = ("name", "full name", "student")
_WHY_ABSENT: dict[RowStatus, str] = {
    "missing": "Nothing was handed in.",
    "excused": "The student is excused, so this exercise does not count.",
    "not drawn": "The student gets another case of the pool.",
}
_EMAILS = ("email", "email address", "e-mail")
_SECTIONS = ("section", "sections", "section name", "groups", "group")
_FIRST, _LAST = ("first name", "firstname", "given name"), ("last name", "lastname", "surname", "family name")


def read_roster(path: Path) -> tuple[Student, ...]:
    """Return the students in a CSV, in the order of its lines.

    The CSV may have the headings login, name, email and section, or may be an export of a platform:

    - Canvas, Grades, Export: Student, ID, SIS User ID, SIS Login ID, Section (Canvas instructor guide, "How do I export
      grades in the Gradebook?"). The line with the maximum points and the line of the test student are ignored.
    - Moodle, Participants, Download: First name, Last name, Email address, perhaps Username (docs.moodle.org,
      "Participants"). The grading worksheet of an assignment is also accepted: Identifier, Full name, Email address
      (docs.moodle.org, "Assignment settings", offline grading worksheet).
    - Gradescope, Roster, Download: First Name, Last Name, SID, Email, Section (guides.gradescope.com, "Adding Students
      and Staff").

    The separator may be a comma, a semicolon or a tab. Raises a `UserError` that names each invalid line.
    """
    text = _read_text(path)
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    header = next(iter(lines), "")
    rows = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=max(",;\t", key=header.count))
    headings = [cell.strip().casefold() for cell in next(rows, [])]
    column = next((name for name in _LOGINS if name in headings), None)
    if column is None:
        raise UserError(
            f"{path} has no column with logins: its first line must contain the headings, for example"
            " login,name,email,section."
        )
    found: dict[int, Student] = {}
    for cells in rows:
        row = {name: _cell(cell) for name, cell in zip(headings, cells, strict=False)}
        if any(row.values()) and not _is_no_student(row):
            found[rows.line_num] = _student(row, column)
    problems = [f"line {line}: {problem}" for line, problem in sorted(_problems(found))]
    if not found:
        problems = ["no student found"]
    if problems:
        raise UserError("\n".join([f"{path} cannot be used:", *(f"  {path.name}, {item}." for item in problems)]))
    return tuple(found.values())


def _read_text(path: Path) -> str:
    try:
        return read_text(path, _LIMIT, missing="export the roster from your platform", too_large="is this a roster?")
    except UserError:
        if not path.is_file() or path.stat().st_size > _LIMIT:
            raise
    _warn_once(path)
    return path.read_bytes().decode("cp1252", "replace")


@cache  # warn once, even if several parts of a command read the roster
def _warn_once(path: Path) -> None:
    click.echo(f"{path} is not UTF-8, so it was read as Windows-1252: check the letters of the names.", err=True)


def _cell(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _is_no_student(row: Mapping[str, str]) -> bool:
    """Return whether a line of Canvas' export is no real student, but maximum points, a policy, or the test student."""
    if "sis login id" not in row:
        return False
    name = row.get("student") or ", ".join(filter(None, (_first(row, _LAST), _first(row, _FIRST))))
    return name in ("Points Possible", "Student, Test") or not (name or row["sis login id"])


def _first(row: Mapping[str, str], names: Sequence[str]) -> str:
    return next((row[name] for name in names if row.get(name)), "")


def _student(row: Mapping[str, str], column: str) -> Student:
    name = _first(row, _NAMES) or f"{_first(row, _FIRST)} {_first(row, _LAST)}".strip()
    ids = tuple(row[name] for name in _IDS if name != column and row.get(name))
    return Student(row.get(column, ""), name, _first(row, _EMAILS), _first(row, _SECTIONS), ids)


def _problems(found: Mapping[int, Student]) -> Iterator[tuple[int, str]]:
    """Yield a pair for each line with an invalid login: the number of the line, and a description of the problem."""
    same, alike = defaultdict(list), defaultdict(list)
    for line, student in found.items():
        name = student.login
        if not name:
            yield line, f"{printable(student.name) or 'somebody'} has no login: add it, or remove the line"
            continue
        try:
            student_name(name)
        except UserError as error:
            yield line, str(error).rstrip(".")
        same[login(name)].append(line)
        alike[look_alike_key(name)].append(line)
    for lines in same.values():
        for line in lines[1:]:
            yield line, f"{printable(found[line].login)} is also in line {lines[0]}: keep one of the two lines"
    for lines in alike.values():
        for line in lines[1:]:
            one, two = found[lines[0]].login, found[line].login
            if login(one) != login(two):
                yield (
                    line,
                    f"{two!a} looks like {one!a} in line {lines[0]}: rename one login, so that they look different",
                )


def with_missing(
    rows: Sequence[SubmissionScore],
    students: Sequence[Student],
    exercises: Sequence[str],
    excused: Mapping[str, Sequence[str]] | None = None,
    cases: Sequence[Case] = (),
) -> list[SubmissionScore]:
    """Return the rows of a class, with an additional row `missing` for each exercise that a student did not hand in.

    exercises: the ids of the cases and the written exercises. excused: the exercises from which students are excused,
    by login; `EVERY` means all exercises. cases: the cases of the assignment. If several cases form a pool, only the
    student's own case can be missing; the rows of the other cases get the status `not drawn`. A submission by an
    excused student gets the status `excused`. Logins are changed to the spelling of the roster. If `rows` already has
    rows for missing work, they are replaced. If a student hands in a file with another student's name, the file counts
    for neither of them.
    """
    from_ = {login(name): given for name, given in (excused or {}).items()}
    pools = {case.id: case for case in cases if case.pool}

    def status_of(key: str, exercise: str, row: SubmissionScore | None) -> RowStatus:
        pool = pools[exercise].pool if exercise in pools else (exercise,)
        if not {EVERY, *pool}.isdisjoint(from_.get(key, ())):
            return "excused"
        return "missing" if row is None else row.status

    # Without a common spelling, a platform would treat "Ada" and "ada" as two students.
    spelt = {login(student.login): student.login for student in students}
    rows = [
        replace(row, student=spelt.get(login(row.student), row.student))
        for row in rows
        if row.is_there or row.arrival is not None  # keep the rows of submissions that do not count
    ]
    rows = [
        replace(
            row,
            status="excused",
            total=None,
            criteria={},
            reason="The student is excused, so this submission does not count.",
        )
        if row.is_there and status_of(login(row.student), row.recipe, row) == "excused"
        else row
        for row in rows
    ]
    known = (row for row in rows if all(flag.id != OTHER_NAME for flag in row.flags))
    there = {(login(row.student), row.recipe) for row in known}
    names = {row.submission for row in rows}
    for exercise in exercises:
        pool = pools[exercise].pool if exercise in pools else (exercise,)
        for student in students:
            key = login(student.login)
            if (key, exercise) not in there:
                is_other = exercise in pools and pools[exercise].case_of(student.login) != exercise
                status = status_of(key, exercise, None)
                if is_other or any((key, one) in there for one in pool):
                    status = "not drawn"
                name = f"{student.login}_{exercise} ({status})"
                while name in names:  # a row with this name exists already
                    name += "+"
                rows.append(
                    SubmissionScore(
                        submission=name,
                        student=student.login,
                        recipe=exercise,
                        status=status,
                        reason=_WHY_ABSENT[status],
                        total=None,
                        criteria={},
                        flags=(),
                        provenance={},
                    )
                )
    return sorted(rows, key=lambda row: row.submission)


def with_groups(rows: Sequence[SubmissionScore], groups: Sequence[Sequence[str]]) -> list[SubmissionScore]:
    """Return the rows, and for each row of a group member, add a copy for every other member of the group.

    groups: the groups, as logins. A copy counts as a submission by the other member, with that member's due date. A
    decision about a row also applies to its copies. A decision about a copy applies only to that copy.
    """
    mates = {
        login(name): [other for other in group if login(other) != login(name)] for group in groups for name in group
    }
    decided = {row.submission: row for row in rows if row.copy_of and row.is_decided}
    found = [row for row in rows if not row.copy_of]
    names = {row.submission for row in found}
    for row in [row for row in found if row.is_there]:
        known = all(flag.id != OTHER_NAME for flag in row.flags)
        for other in mates.get(login(row.student), ()) if known else ():
            name = f"{row.submission} (with {other})"
            while name in names:
                name += "+"
            names.add(name)
            size = len(mates[login(row.student)]) + 1
            message = f"{printable(row.student)} handed in the file for a group of {size}."
            flags = (*row.flags, Flag(id=GROUP, message=message))
            copy = replace(row, submission=name, student=other, copy_of=row.submission, flags=flags)
            found.append(decided.get(name, copy))
    return sorted(found, key=lambda row: row.submission)


def with_roster_flags(
    rows: Sequence[SubmissionScore], students: Sequence[Student], cases: Sequence[Case]
) -> list[SubmissionScore]:
    """Return the rows with flags for strangers and for wrong seeds.

    A row gets a flag if its student or its sender is not on the roster, or if its seed is not the student's seed.
    """
    known = {login(student.login) for student in students}
    people = {key for one in students for key in (letters_of(one.name), *map(login, one.names))} - {""}
    named = any(student.name for student in students)
    owners = {(case.id, case.seed_of(student.login)): student.login for case in cases for student in students}
    personal = {case.id: case for case in cases if case.personal_seeds}
    flagged = []
    for row in rows:
        flags = []
        sent = row.arrival.senders if row.arrival else ()
        senders = tuple(one for one in sent if login(one.name) not in ("", _ANYBODY))
        if row.copy_of:  # in a group, only the row of the member who handed in the file gets flags
            flagged.append(row)
            continue
        if login(row.student) not in known:
            flags.append(Flag(id=STRANGER, message=f"{printable(row.student)} is not on the roster."))
        elif named and senders and not fits(senders, login(row.student)) and not people & _names_of(senders):
            who = " and ".join(printable(one.name) for one in senders)
            message = (
                f"According to {senders[0].platform}, {who} sent this file. The roster does not contain this sender."
            )
            flags.append(Flag(id=STRANGER, message=message))
        seed, case = row.provenance.get("seed"), personal.get(row.recipe)
        if case is not None and isinstance(seed, int) and seed != case.seed_of(row.student):
            owner = owners.get((case.id, seed))
            whose = "nobody on the roster" if owner is None else printable(owner)
            message = f"The runs have the seed {seed}, which belongs to {whose}, not to {printable(row.student)}."
            flags.append(Flag(id=OTHER_SEED, message=message))
        flagged.append(replace(row, flags=(*row.flags, *flags)) if flags else row)
    return flagged


def _names_of(senders: Sequence[Sender]) -> set[str]:
    return {name for one in senders for name in (login(one.email), login(one.id), letters_of(one.name))}
