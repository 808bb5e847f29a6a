"""`grader demo`: make a small class from the known fixes, with every kind of verdict, and score it."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from rich.console import Console

from grader.grade import score_folder
from grader.score.canaries import reference_report
from grader.score.solutions import KnownFix, known_fixes
from grader.session import ScoreOptions
from grader.written.grade import solution
from harness.errors import UserError
from harness.exercise import RunOptions, start_exercise, verify_exercise
from harness.recipe import load_recipe, recipe_ids
from harness.submission.archive import submit, submit_file
from harness.written.exercise import FileExercise, file_exercise_ids, find_file_exercise, stub
from harness.written.workspace import start_file_exercise

_NAMES = ("ada", "alan", "barbara", "donald", "edsger", "emmy", "frances", "grace", "hedy", "ida", "john")
_RECIPES, _FIXES = 7, 3  # the first recipes, and the fixes of each; of the very first one all kinds
VERDICTS = ("full", "masking", "wrong", "alternative", "overreach")


def run_demo(folder: Path, *, jobs: int) -> int:
    """Make the class in `folder/submissions`, score it into `folder/reports`, and return the exit status of that.

    Raises `UserError` if the folder holds anything else than an earlier demo.
    """
    marker = folder / ".demo"
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise UserError(f"{folder} is there and is not an earlier demo: name another folder with --to.")
    for name in ("submissions", "work", "reports"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    console = Console(stderr=True)
    with console.status("making a class of example submissions; every run is really made"):
        number = make_class(folder / "submissions", folder / "work", jobs)
    shutil.rmtree(folder / "work")
    console.print(f"{number} submissions in {folder / 'submissions'}. Scoring them ...", highlight=False)
    options = ScoreOptions(out=folder / "reports", jobs=jobs)
    return score_folder(folder / "submissions", options)


def first_fixes(recipe_id: str) -> list[KnownFix]:
    """Return the reference fix of a recipe, and its first known fix of every other verdict, in `VERDICTS`' order."""
    known, _ = known_fixes(load_recipe(recipe_id))
    firsts = (next((fix for fix in known if fix.verdict == verdict), None) for verdict in VERDICTS)
    return [fix for fix in firsts if fix is not None]


def make_class(out: Path, work: Path, jobs: int) -> int:
    """Make the submissions, `jobs` runs at a time, and return how many there are."""
    students = (f"{name}{'' if turn == 0 else turn}" for turn in count() for name in _NAMES)
    recipes = recipe_ids()[:_RECIPES]
    fixes = [fix for recipe in recipes for fix in first_fixes(recipe)[: None if recipe == recipes[0] else _FIXES]]

    def hand_in(fix: KnownFix, student: str) -> Path:
        return example_submission(fix.recipe.id, student, fix.source, work / "template", work / student, out)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda recipe: broken_workspace(recipe, work / "template"), recipes))
        made = [pool.submit(hand_in, fix, student) for fix, student in zip(fixes, students, strict=False)]
        for exercise in filter(None, map(find_file_exercise, file_exercise_ids())):
            for answer, student in zip((solution(exercise), stub(exercise)), students, strict=False):
                made.append(pool.submit(example_answer, exercise, student, answer, work / student, out))
        good = made[0].result().read_bytes()
        for done in made:
            done.result()
    (out / f"half_{recipes[0]}.tar.gz").write_bytes(good[: len(good) // 2])
    return len(list(out.glob("*.tar.gz")))


def broken_workspace(recipe: str, work: Path, options: RunOptions | None = None) -> Path:
    """Make `work/<recipe>/` with its broken run, where it is not there yet, and return `work`."""
    start_exercise(recipe, work, options or RunOptions(), bar=False)
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
) -> Path:
    """Return the tarball that a student with this experiment and report hands in.

    `template` is a `work` folder in which the broken run was made; `report` changes the reference report. Raises
    `UserError` if the experiment does not run or the report cannot be handed in.
    """
    shutil.copytree(template / recipe, work / recipe)
    (work / recipe / "experiment.py").write_text(source, encoding="utf-8")
    workspace = verify_exercise(recipe, work, RunOptions(), bar=False)
    broken, fixed = (
        (workspace.run_folder(run) / "metrics.log").read_text(encoding="utf-8") for run in ("broken", "fixed")
    )
    text = reference_report(recipe, broken, fixed)
    workspace.report.write_text(report(text) if report else text, encoding="utf-8")
    return submit(workspace, student, out).path


def example_answer(exercise: FileExercise, student: str, text: str, work: Path, out: Path) -> Path:
    """Return the tarball that a student hands in whose answer is this text."""
    workspace, _ = start_file_exercise(exercise, work)
    workspace.answer.write_text(text, encoding="utf-8")
    return submit_file(workspace, student, out).path
