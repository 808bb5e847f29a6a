"""Make example submissions for the demo, for tests and for benchmarks.

Each example contains a known edit and, by default, a report that earns all points.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from grader.score.self_test import reference_report
from harness.recipes.cases import Case
from harness.recipes.catalogue import SUITE, Catalogue, load_recipe
from harness.recipes.known_edits import known_fixes, load_shared_edits
from harness.run.options import RunOptions
from harness.student.exercise import start_exercise, verify_exercise
from harness.student.hand_in import submit


def broken_workspace(
    recipe: str, work: Path, options: RunOptions | None = None, student: str | None = None, catalogue: Catalogue = SUITE
) -> Path:
    """If the folder `work/<recipe>/` does not exist, create it with its broken run. Return `work`."""
    start_exercise(recipe, work, options or RunOptions(), student=student, bar=False, catalogue=catalogue)
    return work


def example_submission(
    recipe: str,
    student: str,
    source: str,
    template: Path,
    work: Path,
    out: Path,
    *,
    report: Callable[[str], str] | None = None,
    catalogue: Catalogue = SUITE,
) -> Path:
    """Make the tarball that a student with this fixed experiment would hand in, and return its path.

    source: the text of the fixed experiment. template: a `work` folder with the broken run, which is copied to `work`.
    report: a function that changes the report, which would otherwise earn all points. Raises `UserError` if the
    experiment does not run, or if the report is invalid.
    """
    shutil.copytree(template / recipe, work / recipe)
    (work / recipe / "experiment.py").write_text(source, encoding="utf-8")
    workspace = verify_exercise(recipe, work, RunOptions(), bar=False, catalogue=catalogue)
    broken, fixed = (
        (workspace.run_folder(run) / "metrics.log").read_text(encoding="utf-8") for run in ("broken", "fixed")
    )
    text = reference_report(workspace.exercise, broken, fixed)
    workspace.report.write_text(report(text) if report else text, encoding="utf-8")
    return submit(workspace, student, out).path


def edits_of(case: Case) -> dict[str, str]:
    """Return three edited experiments for a case.

    In "right", the fault is fixed. In "masked", only its symptom is gone. In "wrong", the symptom is still there.
    """
    broken = case.broken_source()
    if case.is_healthy:
        edits = (edit for edit in load_shared_edits(case.experiment) if edit.verdict == "masking")
        masked = next(edits).source(broken)
        return {"right": broken, "masked": masked, "wrong": masked}
    first = {fix.verdict: fix.source for fix in reversed(known_fixes(load_recipe(case.parts[0]))[0])}
    return {"right": first["full"], "masked": first["masking"], "wrong": first.get("wrong", broken)}
