"""`grader forget`: delete everything about a student from the reports, decisions, exported grades and the log."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic_core import to_json

from grader.course.decisions import decisions_path, load_decisions
from grader.course.export import given_path, read_given
from grader.course.log import log_path, note, read_log
from grader.course.requests import read_requests, requests_path
from grader.private import write_private
from grader.report.platforms import Given
from grader.report.write import EXPORTS, rewrite_class
from grader.score.identity import ABOUT_OTHERS
from grader.score.scores_file import read_scores
from grader.score.verdict import Scores, SubmissionScore
from grader.session import hold_reports_folder, lock_folder
from harness.errors import UserError, printable
from harness.recipes.personal import login


def forget(student: str, out: Path) -> list[str]:
    """Delete a student from a folder of reports and from the files next to it.

    Return lines that list deleted files, and files that the instructor must delete. The pages of other students stay
    unchanged. Exports and the page of similar work are deleted; the next `grader export` and `grader score` make them
    again, without the student. Raises `UserError` if the folder contains no scores, or nothing about the student.
    """
    with hold_reports_folder(out):
        scores = read_scores(out)
        gone = [row for row in scores.submissions if login(row.student) == login(student)]
        names = {row.submission for row in gone}
        given = read_given(out)
        in_given = any(login(student) in rows for columns in given.values() for rows in columns.values())
        if not gone and not in_given:
            raise UserError(f"{out} contains nothing about {printable(student)}: check the login.")
        _rewrite_decisions(out, names, student)
        if in_given:
            write_private(given_path(out), to_json(_without(given, login(student)), indent=1) + b"\n")
        _rewrite_log(out, names)
        asked = read_requests(out)
        kept = [one for one in asked if one.submission not in names]
        if kept != asked:
            write_private(requests_path(out), "".join(f"{one.model_dump_json()}\n" for one in kept).encode())
        rewrite_class(_without_student(scores, names, student), out, without=names)
        note(out, "forget", "one student")
    return [
        f"{out}: deleted {len(gone)} rows with their pages, {EXPORTS}/ and similar.html.",
        *_files_left(scores.submissions, gone),
    ]


def _files_left(rows: Sequence[SubmissionScore], gone: Sequence[SubmissionScore]) -> Iterator[str]:
    """Yield a line for each file that the instructor must delete: now or, if a group shares the file, later."""
    for row in gone:
        if row.arrival is None or row.copy_of:  # skip a row without a file, and a copy of a row of another group member
            continue
        file = printable(row.arrival.file)
        if mates := [printable(one.student) for one in rows if one.copy_of == row.submission]:
            yield (
                f"  {file} is also the work of {', '.join(mates)}, whose pages still show it: delete this file when"
                " their grades are final"
            )
        else:
            yield f"  delete this file from your submissions: {file}"


def _without_student(scores: Scores, names: Collection[str], student: str) -> Scores:
    """Return the scores without these submissions. In the other rows, delete the flags that mention them."""
    rows = tuple(_without_mentions(row, names, student) for row in scores.submissions if row.submission not in names)
    return replace(
        scores,
        submissions=rows,
        decisions=tuple(one for one in scores.decisions if one.submission not in names),
        changes=tuple(one for one in scores.changes if one.submission not in names),
    )


def _without_mentions(row: SubmissionScore, names: Collection[str], student: str) -> SubmissionScore:
    words = "|".join(re.escape(printable(word)) for word in (student, *names))
    named = re.compile(rf"(?<!\w)({words})(?!\w)")  # "adam" does not mention "ada"
    flags = tuple(flag for flag in row.flags if flag.id not in ABOUT_OTHERS or not named.search(flag.message))
    return replace(row, flags=flags)


def _without(given: Mapping[str, Given], student: str) -> dict[str, Given]:
    return {
        platform: {name: {who: text for who, text in rows.items() if who != student} for name, rows in columns.items()}
        for platform, columns in given.items()
    }


def _rewrite_decisions(out: Path, names: Collection[str], student: str) -> None:
    """Delete the decisions about these submissions from the decisions file. Keep all other text of the file."""
    path = decisions_path(out)
    with lock_folder(path.parent, wait=True):
        entries = load_decisions(out)
        if not any(one.submission in names for one in entries):
            return
        head, *tables = re.split(r"^(?=\[\[override\]\])", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        if len(tables) != len(entries):
            raise UserError(
                f"{path}: write [[override]] on a separate line before each decision, so that grader can delete one of"
                " them."
            )
        kept = (
            _comments_behind(table, student) if one.submission in names else table
            for table, one in zip(tables, entries, strict=True)
        )
        write_private(path, (head + "".join(kept)).encode())


def _comments_behind(table: str, student: str) -> str:
    """Return the comments at the end of a deleted entry, because they belong to the next entry.

    Leave out lines that contain the student's login.
    """
    lines = table.splitlines(keepends=True)
    own = max(number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    return "".join(line for line in lines[own + 1 :] if line.strip() and login(student) not in login(line))


def _rewrite_log(out: Path, names: Collection[str]) -> None:
    entries = read_log(out)
    kept = [
        entry.model_copy(update={"changes": tuple(one for one in entry.changes if one.submission not in names)})
        for entry in entries
    ]
    if kept != entries:
        lines = "".join(f"{entry.model_dump_json(exclude_defaults=True)}\n" for entry in kept)
        write_private(log_path(out), lines.encode())


def places_left(student: str) -> Sequence[str]:
    """Return lines that list the data that the instructor must delete by hand."""
    return [
        f"Remove {printable(student)} from the roster, the course file and the files of times. Otherwise the"
        " reports list the student again after the next scoring.",
        "Run grader clear-cache to delete the cached replays. They contain experiments and logs, but no names.",
        "Delete the student from backups, from the platform and from your own copies.",
    ]
