"""Pack this grader as an autograder for Gradescope. On Gradescope, run the autograder on one submission.

Gradescope unpacks the bundle into `/autograder/source`, runs `setup.sh` once, and runs `run_autograder` for each
submission. The formats of all files: https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from grader.course.course import COURSE, read_course
from grader.course.kit import LEGAL
from grader.course.lock import Handout, lock_path
from grader.course.roster import with_roster_flags
from grader.intake.folder import HandedIn, read_folder
from grader.judge import Refuse, judge_files
from grader.progress import ProgressBar
from grader.report.gradebook import check_words, csv_bytes
from grader.report.text import clip
from grader.score.identity import compare_rows, find_left_out
from grader.score.release import seen_by_student
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.verdict import SubmissionScore
from grader.session import ScoreOptions, open_grading
from harness.canonical_setup import usable_cores
from harness.errors import UserError, printable
from harness.files import write_whole
from harness.recipes.catalogue import SUITE, Catalogue
from harness.recipes.suite import ROOT, suite_files
from harness.submission.document import visible
from harness.written.exercise import load_exercise

Visibility = Literal["visible", "after_due_date", "after_published", "hidden"]
AUTOGRADER = Path("/autograder")
_SETTINGS = "gradescope.json"
_COURSE = "course"  # the folder of the course file in the bundle
_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this script once, as root, when it builds the image. In Gradescope, choose an image of Ubuntu 24.04.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends bubblewrap python3-venv
python3 -m venv /autograder/venv
# From the extra index, pip installs PyTorch without CUDA, which is gigabytes smaller.
/autograder/venv/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \\
  -e /autograder/source
"""
_RUN = """\
#!/bin/sh
# Gradescope runs this script for each submission.
cd /autograder/source && exec /autograder/venv/bin/python -m grader.course.gradescope
"""


@dataclass(frozen=True)
class Settings:
    """The settings of an assignment on Gradescope.

    exercises: the ids of the exercises; each exercise has an equal share of 100 points. visibility: when students see
    the items. trust_submissions: whether to run students' code without a sandbox, because bubblewrap does not work
    there. assignment: the id of the assignment in the course file, or None without a course.
    """

    exercises: tuple[str, ...]
    visibility: Visibility = "after_due_date"
    trust_submissions: bool = False
    assignment: str | None = None


def bundle(settings: Settings, course: Path | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file of the autograder.

    course: the course file of the assignment, or None. The autograder then also contains the course file, its roster
    and its rubric. Raises `UserError` if an exercise is unknown, or if there is no exercise.
    """
    if not settings.exercises:
        raise UserError("Name each exercise of the assignment with --exercise, or a course with --course.")
    if course is None:
        for exercise in settings.exercises:
            load_exercise(exercise)
    else:
        yield from _course_files(course, settings.assignment)
    yield "setup.sh", _SETUP.encode()
    yield "run_autograder", _RUN.encode()
    yield _SETTINGS, json.dumps(asdict(settings), indent=1).encode() + b"\n"
    for name in ("pyproject.toml", "README.md", *LEGAL):
        yield name, (ROOT / name).read_bytes()
    for folder in ("exercises", "grader", "harness", "solutions", "trainwreck"):
        for name, path in suite_files(folder):
            yield name, path.read_bytes()


def _course_files(file: Path, assignment: str | None) -> Iterator[tuple[str, bytes]]:
    course = read_course(file)
    yield f"{_COURSE}/{COURSE}", file.read_bytes()
    chosen = course.find(assignment)
    if (lock := lock_path(course, chosen)).exists():
        yield f"{_COURSE}/{lock.name}", lock.read_bytes()
    for name in filter(None, (course.roster, chosen.rubric)):
        if Path(name).name != name:
            raise UserError(f"{file} names {printable(name)}: move that file into the folder of {file.name}.")
    if chosen.rubric:
        yield f"{_COURSE}/{chosen.rubric}", (file.parent / chosen.rubric).read_bytes()
    # The roster may be a gradebook with grades. Pack only logins and names, because scoring needs no other columns.
    lines = [("login", "name"), *((student.login, student.name) for student in course.students())]
    yield f"{_COURSE}/{course.roster}", csv_bytes(lines)


def results(rows: Sequence[SubmissionScore], settings: Settings) -> dict[str, Any]:
    """Return the content of `results.json`: the score out of 100, and a "test" for each rubric item.

    rows: the scores of the tarballs in one submission. If the student can correct a problem, such as a missing file,
    the problem becomes a visible test with 0 points. An open item has no score, and does not count in the total. Raises
    `UserError` if the grader could not judge an exercise at all, because an error is better than an undeserved 0.
    """
    share = len(settings.exercises)
    tests: list[dict[str, Any]] = []
    notes = [f"The file {clip(row.submission, 200)} belongs to {clip(row.student, 200)}." for row in rows]
    notes += [f"{clip(row.submission, 200)} does not count: its exercise is not in this assignment." for row in rows
              if row.recipe not in settings.exercises]  # fmt: skip
    outside = find_left_out(rows)
    for exercise in settings.exercises:
        found = [row for row in rows if row.recipe == exercise]
        counting = [row for row in found if row.submission not in outside and row.status != "rejected"]
        if len(counting) != 1:
            why = [outside.get(row.submission, row.reason) for row in found if row not in counting]
            why += [f"{len(counting) or 'No'} files were handed in for this exercise: hand in one file."]
            tests.append(_test(exercise, " ".join(why), "visible", 0.0, 100 / share))
            continue
        [row] = counting
        if not row.criteria:
            raise UserError(f"{printable(row.submission)} cannot be judged: {printable(row.reason, 600)}")
        # If the setting is "visible", students see the items before the due date, so no item may reveal the cause.
        row = seen_by_student(row, "feedback" if settings.visibility == "visible" else "solution")
        for check in (check for criterion in row.criteria.values() for check in criterion.checks):
            title = check.title if share == 1 else f"{exercise}: {check.title}"
            earned = None if check.points is None else check.points / share
            tests.append(_test(title, check_words(check), settings.visibility, earned, check.max / share))
        if row.limit:
            title = "The rubric limits the total" if share == 1 else f"{exercise}: the rubric limits the total"
            tests.append(_test(title, row.limit.why, settings.visibility, -row.withheld / share, 0.0))
    if any("score" not in test for test in tests):
        notes.append("Your instructor must still decide some items. The score does not include these items yet.")
    return {
        "score": round(sum(test.get("score", 0.0) for test in tests), 2),
        "output": "\n".join(notes),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": settings.visibility,
        "stdout_visibility": "hidden",
        "extra_data": {"flags": [f"{row.submission}: {flag.id}: {flag.message}" for row in rows for flag in row.flags]},
        "tests": tests,
    }


def _test(name: str, output: str, visibility: Visibility, earned: float | None, most: float) -> dict[str, Any]:
    judged = {} if earned is None else {"score": round(earned, 4), "status": "passed" if earned == most else "failed"}
    return {
        "name": clip(name, 300),
        **judged,
        "max_score": round(most, 4),
        "output": visible(output),
        "visibility": visibility,
    }


def run(settings: Settings, folder: Path = AUTOGRADER) -> None:
    """Score the files in `folder/submission/`, and write `folder/results/results.json`.

    folder: the folder that Gradescope uses. Raises `UserError` as `results` does.
    """
    try:
        files = read_folder(folder / "submission").files
    except UserError:
        why = "There is no .tar.gz file: hand in the file that make submit wrote."
        found = {"score": 0.0, "output": why, "stdout_visibility": "hidden", "tests": []}
    else:
        options = ScoreOptions(folder, usable_cores(), trust_submissions=settings.trust_submissions)
        found = results(_score_files(files, settings, options), settings)
    write_whole({folder / "results" / "results.json": json.dumps(found, indent=1, allow_nan=False).encode()})


def _score_files(files: Sequence[HandedIn], settings: Settings, options: ScoreOptions) -> Sequence[SubmissionScore]:
    """Return the rows of a submission, with flags from the roster if there is a course.

    Points for lateness are not deducted, because Gradescope does that.
    """
    if settings.assignment is None:
        return _score_and_compare(files, options, DEFAULT_RUBRIC, SUITE)
    course = read_course(ROOT / _COURSE / COURSE)
    assignment = course.find(settings.assignment)
    cases = course.cases(assignment)
    refuse = Handout(course, assignment).problem
    rows = _score_and_compare(files, options, course.rubric(assignment), Catalogue(cases), refuse)
    return with_roster_flags(rows, course.students(), cases)


def _score_and_compare(
    files: Sequence[HandedIn], options: ScoreOptions, rubric: Path, catalogue: Catalogue, refuse: Refuse | None = None
) -> Sequence[SubmissionScore]:
    with open_grading(options, load_weights(rubric), Console(stderr=True), catalogue) as grading:
        rows = [score.row for score in judge_files(files, grading, ProgressBar(), refuse)]
    return compare_rows(sorted(rows, key=attrgetter("submission")))


def main() -> None:
    """Run the autograder. If there is an error, write no results; Gradescope shows the message to the instructor."""
    values = json.loads((ROOT / _SETTINGS).read_text(encoding="utf-8"))
    try:
        run(Settings(**{**values, "exercises": tuple(values["exercises"])}))
    except UserError as error:
        sys.exit(f"No results: {error}")


if __name__ == "__main__":
    main()
