"""`grader demo`: make a small class from the known fixes, with every kind of verdict, and score it."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from rich.console import Console

from grader.course.examples import broken_workspace, example_answer, example_submission
from grader.grade import score_folder
from grader.score.known_edits import KnownFix, known_fixes
from grader.session import ScoreOptions
from grader.written.grade import solution
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.written.exercise import file_exercise_ids, find_file_exercise, stub

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
    fixes = [
        fix for recipe in recipes for fix in first_fixes(recipe)[: None if recipe == recipes[0] else _FIXES]
    ]

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
