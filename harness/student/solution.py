"""The solution of an exercise, and the question that a student answers before seeing it.

`harness.workspace.progress` stores that a student saw the solution, and the manifest of the submission says so.
"""

from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.recipes.recipe import SOLUTIONS, KitRecipe, Recipe
from harness.student.attempts import edit_of
from harness.workspace.progress import note_progress, progress_of

_NOTHING_WRONG = (
    "The right answer changes no line and names the cause healthy. To be sure, first run the checks: they find"
    " nothing wrong. Then change one line that looks odd, run the experiment, and compare both runs. If they are"
    " alike, the line is harmless."
)
NOTES_ALONE = "These notes describe runs with only one of the faults. With both, or with another seed, values differ:"


@dataclass(frozen=True)
class Solution:
    """The solution of an exercise.

    cause: a sentence that names it. fix: the lines of a diff. remark: a sentence before the notes, or "". notes: the
    instructor's notes about each fault, in Markdown.
    """

    cause: str
    fix: list[str]
    remark: str
    notes: list[str]


def solution_of(recipe: Recipe) -> Solution:
    """Return the solution of an exercise. Raises `UserError` in a course kit, which has no solutions."""
    fix = edit_of(recipe.broken_source(), recipe.healthy_source(), ("broken", "fixed"))
    remark = _NOTHING_WRONG if recipe.is_healthy else NOTES_ALONE if len(recipe.causes) > 1 else ""
    paths = [SOLUTIONS / cause / "notes.md" for cause in recipe.causes]
    notes = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    return Solution(f"{recipe.id}: {recipe.cause}.", fix, remark, notes)


def question_before(recipe: Recipe, folder: Path) -> str:
    """Return the question that a student must answer with yes before seeing the solution, or "" if there is none.

    folder: the workspace of the exercise. Raises `UserError` in a course kit, which has no solutions.
    """
    if isinstance(recipe, KitRecipe):
        raise UserError("A course kit contains no solutions: your instructor decides when to show them.")
    progress = progress_of(folder)
    if progress.handed_in is not None or progress.revealed or progress.solved is not None:
        return ""
    return f"You have not handed in {recipe.id}. Show its solution? Your submission will say that you saw it."


def note_reveal(recipe: Recipe, folder: Path) -> None:
    """Record that a student saw the solution, unless the exercise is solved or was handed in."""
    if question_before(recipe, folder):
        note_progress(folder, revealed=True)
