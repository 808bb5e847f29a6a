"""`grader export`: write the scores in formats for students and platforms. Each format has a folder in `export/`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

import click
from markupsafe import Markup
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from grader.course import gradescope
from grader.course.course import read_course
from grader.course.log import note
from grader.private import path_beside, private_files, write_private
from grader.report import platforms
from grader.report.class_statistics import ITEM_COLUMNS, item_cells, items, matrix
from grader.report.excerpts import own_work
from grader.report.gradebook import (
    cell,
    csv_bytes,
    export,
    gradebook,
    gradebook_json,
    not_exported,
    pseudonymous,
    students_of,
)
from grader.report.pages import render_student, render_submission
from grader.report.standing import standings
from grader.report.text import MARKER, clip, file_stem
from grader.report.write import EXPORTS, new_export, write_zip
from grader.score.deadlines import ReleaseLevel
from grader.score.identity import find_left_out
from grader.score.release import as_students_see, level_of
from grader.score.scores_file import read_scores
from grader.score.verdict import Scores, SubmissionScore
from grader.session import lock_folder
from harness.errors import UserError, name_place, printable
from harness.recipes.personal import login

Format = Literal["canvas", "moodle", "gradescope-autograder", "csv", "json", "pages"]
# For each format, the names of the files that are not pages, and what to do with the files.
_FORMATS: dict[Format, tuple[tuple[str, ...], str]] = {
    "canvas": (("canvas.csv", "feedback.zip"), "import it into Canvas (Grades, Import)"),
    "moodle": (("moodle.csv", "feedback.zip"), "import both into Moodle (docs/grading.md)"),
    "gradescope-autograder": (("autograder.zip",), "upload it in Gradescope: Configure Autograder, Zip file upload"),
    "csv": (("grades.csv", "matrix.csv", "items.csv"), "open them in a spreadsheet"),
    "json": (("grades.json",), "read it with your own program"),
    "pages": (("index.csv",), "send each page to the student whose login is in the same row of index.csv"),
}
_GIVEN: TypeAdapter[dict[str, platforms.Given]] = TypeAdapter(dict[str, platforms.Given])
_LISTED = 30  # the maximum number of changed cells that the command lists
_Page = Callable[[SubmissionScore], str]
# Matches the parts of a page that are only for the instructor.
_YOURS = re.compile(r'<(p|details) class="yours.*?</\1>\n', re.DOTALL)
_FOR_YOU = ("csv", "json")  # formats that only the instructor sees; they contain everything
_SEEN: dict[ReleaseLevel, str] = {
    "score": "In this export, students see only their score. Export again when they may see the feedback.",
    "feedback": "In this export, students see feedback, but no causes. Export again when they may see the causes.",
    "solution": "In this export, students see everything, including the causes.",
}


@dataclass(frozen=True)
class ExportOptions:
    """The options of the command `grader export`, which `docs/grading.md` describes."""

    out: Path
    gradebook: Path | None = None
    course: Path | None = None
    assignment: str | None = None
    column: str | None = None
    exercises: tuple[str, ...] = ()
    overwrite: bool = False
    pseudonyms: bool = False
    visibility: gradescope.Visibility | None = None
    trust_submissions: bool = False


def run_export(platform: Format, options: ExportOptions, now: datetime | None = None) -> None:
    """Write an export, which replaces the earlier export in this format. Print its files, and notes on missing grades.

    now: the time with time zone that decides how much students may see; by default the current time. Raises `UserError`
    for invalid reports, tables, courses or options.
    """
    _refuse_unused(platform, options)
    # The table of a platform may contain only email addresses, so look for the students' addresses on the roster.
    roster = read_course(options.course).students() if options.course else ()
    names = {student.login: (student.email,) for student in roster if student.email}
    out, folder = options.out, options.out / EXPORTS / platform
    files, following = _FORMATS[platform]
    scores = None if platform == "gradescope-autograder" else read_scores(out)
    if scores and options.assignment and scores.assignment != options.assignment:
        raise UserError(
            f"{out} contains the scores of {printable(scores.assignment) or 'submissions without an assignment'}, not"
            f" of {printable(options.assignment)}: give the correct folder with --out."
        )
    if scores is not None:
        options = _with_whole_pools(options, scores)
    now = now or datetime.now(UTC)
    with name_place(out):
        with private_files():
            out.mkdir(parents=True, exist_ok=True)
        with lock_folder(out) as alone:
            if not alone:
                raise UserError(f"Another grader command is writing to {out} now: wait until it has finished.")
            with new_export(folder, files) as scratch:
                notes = _write(platform, scores, now, scratch, options, names)
            note(out, "export", f"{platform}{f' into {options.gradebook.name}' if options.gradebook else ''}")
    for path in (folder / name for name in files):
        if path.exists():
            click.echo(path)
    click.echo(f"Next: {following}.")
    if scores is not None:
        if scores.schedule and platform not in _FOR_YOU:
            click.echo(_describe_level(platform, scores, now, folder))
        _say_what_is_missing(platform, scores, notes, out)


def _with_whole_pools(options: ExportOptions, scores: Scores) -> ExportOptions:
    """Return the options. If they name one case of a pool, add the other cases, because each student has only one."""
    named = dict.fromkeys(options.exercises)
    for pool in scores.pools:
        if not named.keys().isdisjoint(pool) and (others := [one for one in pool if one not in named]):
            click.echo(f"Also included: {', '.join(others)}, because each student has one case of the pool.", err=True)
            named |= dict.fromkeys(others)
    return replace(options, exercises=tuple(named))


def _write(
    platform: Format, scores: Scores | None, now: datetime, folder: Path, options: ExportOptions, names: platforms.Names
) -> Sequence[str]:
    """Write the files of an export. Return sentences about students or exercises that are missing in the export."""
    if scores is None:
        assignment = read_course(options.course).find(options.assignment) if options.course else None
        settings = gradescope.Settings(
            exercises=assignment.exercises if assignment else options.exercises,
            visibility=options.visibility or "after_due_date",
            trust_submissions=options.trust_submissions,
            assignment=assignment.id if assignment else None,
        )
        write_zip(folder / "autograder.zip", gradescope.bundle(settings, options.course))
        return ()
    seen = as_students_see(scores, now)
    page = partial(_page, options.out, seen, now)
    told = scores
    if options.pseudonyms:
        assert options.course is not None
        told = pseudonymous(scores, read_course(options.course).secret)
    if platform == "csv":
        (folder / "grades.csv").write_bytes(gradebook(told))
        people = {} if options.pseudonyms else people_of(options.course)
        columns, lines, _ = matrix(told, people)
        tables: dict[str, list[Sequence[str]]] = {
            "matrix.csv": [columns, *lines],
            "items.csv": [ITEM_COLUMNS, *map(item_cells, items(told))],
        }
        for name, table in tables.items():
            (folder / name).write_bytes(csv_bytes([list(map(cell, row)) for row in table], mark=True))
    elif platform == "json":
        (folder / "grades.json").write_bytes(gradebook_json(told))
    elif platform == "pages":
        files = {}
        for one in standings(seen).values():
            files[one.name] = f"{file_stem(one.name)}.html"
            (folder / files[one.name]).write_text(render_student(one, page), encoding="utf-8")
        index = [("login", "file"), *((cell(student), file) for student, file in files.items())]
        (folder / "index.csv").write_bytes(csv_bytes(index, mark=True))
    elif options.gradebook is None:
        (folder / f"{platform}.csv").write_bytes(export(seen, "canvas" if platform == "canvas" else "moodle"))
        if platform == "canvas":
            return ["Canvas deletes a grade if its cell here is empty: if Canvas has grades already, use --gradebook."]
    else:
        return _fill(platform, seen, page, folder, options, names)
    return ()


def _fill(
    platform: Format, seen: Scores, page: _Page, folder: Path, options: ExportOptions, names: platforms.Names
) -> Sequence[str]:
    """Write the filled table and the feedback files. Return lines about changed, unchanged and missing grades."""
    assert options.gradebook is not None
    students, given = students_of(seen), read_given(options.out)
    before = given.get(platform, {})
    if platform == "canvas":
        filled = platforms.fill_canvas(
            students, options.gradebook, column=options.column, exercises=options.exercises, names=names,
            given=before, overwrite=options.overwrite,
        )  # fmt: skip
        members = platforms.canvas_files(students, filled, page)
    else:
        filled = platforms.fill_moodle(
            students, options.gradebook, exercises=options.exercises, names=names, given=before,
            overwrite=options.overwrite,
        )  # fmt: skip
        found = standings(seen)
        members = platforms.moodle_files(filled, lambda student: render_student(found[login(student)], page))
    (folder / f"{platform}.csv").write_bytes(filled.table)
    files = write_zip(folder / "feedback.zip", members)
    if not files:
        (folder / "feedback.zip").unlink()
    columns = {name: {**before.get(name, {}), **rows} for name, rows in filled.given.items()}
    noted = to_json({**given, platform: {**before, **columns}}, indent=1) + b"\n"
    write_private(given_path(options.out), noted)
    changes = [f"Cells that the import changes: {len(filled.changes)}"]
    changes += [f"  {line}" for line in filled.changes[:_LISTED]]
    if len(filled.changes) > _LISTED:
        changes.append(f"  and {len(filled.changes) - _LISTED} more: compare {platform}.csv with {options.gradebook}.")
    counts = f"Students with a grade: {len(filled.places)}. Feedback files: {files}."
    return [counts, *changes, *filled.kept, *filled.notes]


def people_of(course: Path | None) -> dict[str, tuple[str, str]]:
    """Return the name and the section of each student of a course, by login. Return {} if there is no course."""
    students = read_course(course).students() if course else ()
    return {login(one.login): (one.name, one.section) for one in students}


def given_path(out: Path) -> Path:
    """Return the path of the file with the exported grades. It is next to the folder of the reports."""
    return path_beside(out, "exported.json")


def read_given(out: Path) -> dict[str, platforms.Given]:
    """Return the grades that earlier exports wrote, by platform. Raises `UserError` if their file is invalid."""
    path = given_path(out)
    try:
        return _GIVEN.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError:
        raise UserError(
            f"{path} should contain the grades of earlier exports, but is invalid: restore this file, or remove it."
            " Without this file, you need --overwrite to replace existing grades."
        ) from None


def _describe_level(platform: Format, scores: Scores, now: datetime, folder: Path) -> str:
    """Return sentences that say what students see in an export."""
    if platform == "canvas" and not (folder / "feedback.zip").is_file():
        return "In this export, students see only their totals."
    level = level_of(scores, now)
    later = {login(row.student) for row in scores.submissions if level_of(scores, now, row.student) != level}
    more = f" {len(later)} students with an extension see less." if later else ""
    return _SEEN[level] + more


def _page(out: Path, seen: Scores, now: datetime, row: SubmissionScore) -> str:
    """Return the page of a submission as HTML, with only the parts that the student may see at the time `now`."""
    level = level_of(seen, now, row.student)
    path = out / f"{file_stem(row.submission)}.html"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if MARKER not in text:
        raise UserError(f"There is no page {path}: score the class again.")
    if level == "solution":
        return _YOURS.sub("", text)
    return render_submission(
        row,
        None,
        provenance=seen.provenance,
        schedule=seen.schedule,
        work=own_work(text) if level != "score" else Markup(),
    )


def _say_what_is_missing(platform: Format, scores: Scores, notes: Sequence[str], out: Path) -> None:
    for one in notes:
        click.echo(one, err=True)
    if waiting := sum(row.status == "not judged" for row in scores.submissions):
        click.echo(f"Not judged, so without a grade in this export: {waiting}. grader review {out} shows why.")
    # The formats for the instructor also contain rejected submissions, which other formats leave out.
    if outside := find_left_out(scores.submissions) if platform in _FOR_YOU else not_exported(scores):
        click.echo(
            f"Submissions left out of this export: {len(outside)}. Decide them with grader review (docs/grading.md).",
            err=True,
        )
        for name, why in outside.items():
            click.echo(f"  {clip(name, 80)}: {clip(why, 200)}", err=True)


def _refuse_unused(platform: Format, options: ExportOptions) -> None:
    if options.pseudonyms and options.course is None:
        raise UserError("Pseudonyms need the secret of a course: add --course.")
    fills = platform in ("canvas", "moodle") and options.gradebook is not None
    packs = platform == "gradescope-autograder"
    for option, given, used in (
        ("--gradebook", options.gradebook, platform in ("canvas", "moodle")),
        ("--overwrite", options.overwrite, fills),
        ("--pseudonyms", options.pseudonyms, platform in _FOR_YOU),
        ("--column", options.column, platform == "canvas" and fills),
        ("--exercise", options.exercises, fills or (packs and not options.course)),
        ("--visibility", options.visibility, packs),
        ("--trust-submissions", options.trust_submissions, packs),
    ):
        if given and not used:
            without = " without --gradebook" if platform in ("canvas", "moodle") and not fills else ""
            without = " with --course" if packs and option == "--exercise" else without
            raise UserError(f"--format {platform}{without} does not use {option}: remove that option.")
