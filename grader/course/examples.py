"""Make submissions from known edits, with reports that earn all points, for the demo, tests and benchmarks."""

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
    """Create `work/<recipe>/` with its broken run, if it does not exist yet, and return `work`."""
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
    """Make the tarball that a student with this experiment and report hands in, and return its path.

    template: a `work` folder with the broken run. report: changes the reference report. Raises `UserError` if the
    experiment does not run or the report is invalid.
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
    """Return three experiments for a case: "right" (fixed), "masked" (symptom masked), and "wrong" (neither)."""
    broken = case.broken_source()
    if case.is_healthy:
        edits = (edit for edit in load_shared_edits(case.experiment) if edit.verdict == "masking")
        masked = next(edits).source(broken)
        return {"right": broken, "masked": masked, "wrong": masked}
    first = {fix.verdict: fix.source for fix in reversed(known_fixes(load_recipe(case.parts[0]))[0])}
    return {"right": first["full"], "masked": first["masking"], "wrong": first.get("wrong", broken)}
