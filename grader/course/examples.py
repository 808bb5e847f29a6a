"""Makes example submissions the way a student does: workspace, both runs, report, tarball."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from grader.score.solutions import SOLUTIONS
from grader.written.answers.known import KnownAnswer, load_answers, reference
from harness.errors import UserError
from harness.exercise import Asked, start_exercise, verify_exercise
from harness.run.metrics_log import batch_records, read_metrics_log
from harness.submission.cited_numbers import cited_value
from harness.submission.file_submission import submit_file
from harness.submission.student_report import parse_report
from harness.submission.submission import submit
from harness.written.exercise import FileExercise
from harness.written.workspace import start_file_exercise

_FIXED_NUMBER = re.compile(r"(\{run: fixed,[^}]*value: )[^}\s]+")

Change = Callable[[str], str]


def broken_workspace(recipe: str, work: Path, asked: Asked | None = None) -> Path:
    """Make `work/<recipe>/` with its broken run, where it is not there yet, and return `work`."""
    start_exercise(recipe, work, asked or Asked(), bar=False)
    return work


def example_submission(
    recipe: str,
    student: str,
    source: str,
    template: Path,
    work: Path,
    out: Path,
    *,
    report: Change | None = None,
) -> Path:
    """Return the tarball that a student with this experiment and report hands in.

    `template` is a `work` folder in which the broken run was made; `report` changes the model report of
    `solutions/`, in which the numbers cited of the fixed run were put right. Raises `UserError` where the
    experiment does not run or the report cannot be handed in.
    """
    shutil.copytree(template / recipe, work / recipe)
    (work / recipe / "experiment.py").write_text(source, encoding="utf-8")
    workspace = verify_exercise(recipe, work, Asked(), bar=False)
    text = true_report(recipe, workspace.run_folder("fixed"))
    workspace.report.write_text(report(text) if report else text, encoding="utf-8")
    return submit(workspace, student, out).path


def right_and_wrong(exercise: FileExercise) -> tuple[KnownAnswer, KnownAnswer]:
    """Return the reference solution of an exercise, and the first of its known answers that loses something."""
    right, *others = load_answers(exercise.id)
    return right, next(answer for answer in others if answer.loses)


def example_answer(exercise: FileExercise, student: str, answer: KnownAnswer, work: Path, out: Path) -> Path:
    """Return the tarball that a student with this answer hands in, whose answer is one file."""
    workspace, _ = start_file_exercise(exercise, work)
    workspace.answer.write_text(answer.source(reference(exercise)), encoding="utf-8")
    return submit_file(workspace, student, out).path


def true_report(recipe: str, fixed_run: Path) -> str:
    """Return the model report with what this fixed run's log holds in place of the numbers it cites of one.

    A run of fewer batches or epochs lacks what the model report cites: its first loss is cited then.
    """
    text = (SOLUTIONS / recipe / "report.md").read_text(encoding="utf-8")
    records = read_metrics_log(fixed_run / "metrics.log")
    cited = [citation for citation in parse_report(text).evidence if citation.run == "fixed"]
    try:
        values = iter([f"{cited_value(records, citation):.6g}" for citation in cited])
    except UserError:
        loss = batch_records(records)[0]["loss"]
        first = f"  - {{run: fixed, signal: loss, step: 0, value: {loss:.6g}}}"
        front, end, body = text.removeprefix("---\n").partition("---\n")
        kept = [line for line in front.splitlines() if "run: fixed" not in line]
        return "---\n" + "\n".join([*kept, first, ""]) + end + body
    return _FIXED_NUMBER.sub(lambda match: match[1] + next(values), text)
