"""The question that a student answers before seeing the solution of an exercise.

`harness.workspace.progress` stores that a student saw the solution, and the manifest of the submission says so.
"""

from pathlib import Path

from harness.errors import UserError
from harness.recipes.recipe import KitRecipe, Recipe
from harness.workspace.progress import note_progress, progress_of


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
