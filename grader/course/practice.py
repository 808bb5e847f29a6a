"""`grader practice`: score a student's work on one exercise at home with the whole rubric, without handing it in.

The student sees the same page as in a course. The page names the cause. If the student hands in the work later, the
submission therefore says that the student has seen the solution.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from grader.intake.folder import read_folder
from grader.judge import judge_files
from grader.progress import shown_progress
from grader.report.text import file_stem
from grader.report.write import write_reports
from grader.sandbox import sandbox_problem
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.verdict import RubricItem, Scores, SubmissionScore
from grader.session import ScoreOptions, open_grading, provenance_of
from harness.student.attempts import list_attempts
from harness.student.hand_in import submit
from harness.workspace.progress import note_score, progress_of
from harness.workspace.workspace import SCORE, make_command, open_workspace, read_source
from harness.written.exercise import FileExercise, load_exercise
from harness.written.workspace import open_file_workspace

_STUDENT = "you"


def reveals_too_early(exercise: str, work: Path) -> bool:
    """Return whether a score would reveal the cause too early.

    It is too early if the student has neither fixed the experiment, nor handed it in, nor seen the cause. Raises
    `UserError` if there is no workspace.
    """
    progress = progress_of(work / exercise)
    if isinstance(load_exercise(exercise), FileExercise) or progress.revealed or progress.handed_in is not None:
        return False
    workspace = open_workspace(work, exercise)
    made = list_attempts(workspace)
    return not (made and made[-1].fixed and made[-1].source() == read_source(workspace.experiment))


def practise(exercise: str, work: Path) -> int:
    """Score the student's work on an exercise, print the lost points, and write the pages.

    Return 0, or 1 if there is no total because an item is open. Raises `UserError` if the work could not be handed in,
    for example because a file is missing.
    """
    found = load_exercise(exercise)
    # Here students run their own code. Without a sandbox, that is no riskier than `harness verify`.
    options = ScoreOptions(out=work / exercise / SCORE, jobs=1, trust_submissions=sandbox_problem() is not None)
    quiet = Console(stderr=True, quiet=options.trust_submissions)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        workspace = (
            open_file_workspace(found, work) if isinstance(found, FileExercise) else open_workspace(work, exercise)
        )
        packed = submit(workspace, _STUDENT, Path(scratch), handed_in=False)
        weights = load_weights(DEFAULT_RUBRIC)
        with open_grading(options, weights, quiet) as grading, shown_progress(Console(stderr=True)) as progress:
            (score,) = judge_files(read_folder(packed.path.parent).files, grading, progress)
    row = replace(score.row, arrival=None)  # the arrival would describe a temporary file
    scores = Scores(provenance=provenance_of(options), submissions=(row,))
    write_reports(scores, {row.submission: score.attachments}, options.out, titles={exercise: found.title})
    note_score(work / exercise, row.total)
    console = Console(markup=False, highlight=False, soft_wrap=True)
    _show(console, row)
    page = options.out / f"{file_stem(row.submission)}.html"
    say = [f"open {page} in a browser"]
    if not isinstance(found, FileExercise):
        say.append(f"to see the solution: {make_command('reveal', work / exercise)}")
    console.print("Next:", *(f"  {line}" for line in say), sep="\n")
    return 0 if row.total is not None else 1


def _show(console: Console, row: SubmissionScore) -> None:
    """Print the total, the points of each criterion, and each item that lost points, the largest loss first."""
    open_checks = [check for one in row.criteria.values() for check in one.checks if check.points is None]
    total = "not judged" if row.total is None else f"{row.total:g} of 100"
    if open_checks:
        least = sum(check.points or 0.0 for one in row.criteria.values() for check in one.checks)
        total = f"{least:g} to {least + sum(check.max for check in open_checks):g} of 100"
    console.print(f"{row.recipe}: {total}{f' ({row.reason})' if row.reason else ''}", style="bold")
    checks: list[RubricItem] = []
    for name, criterion in row.criteria.items():
        points = "open" if criterion.points is None else f"{criterion.points:g}"
        console.print(f"  {name:<16} {points:>5} of {criterion.max:g}")
        checks += criterion.checks
    lacking = [check for check in checks if check.points != check.max]
    for check in sorted(lacking, key=lambda one: (one.points or 0.0) - one.max):
        points = "open" if check.points is None else f"-{check.max - check.points:g}"
        console.print(f"{points:>5}  {check.title}: {check.reason} {check.remedy}".rstrip())
