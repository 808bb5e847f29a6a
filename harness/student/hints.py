"""`harness hint`: show the three hints of a recipe, one after the other.

The texts of the hints are in `recipe.toml`. `harness.workspace.progress` stores how many hints a student asked for, and
the manifest of the submission contains this number.
"""

from pathlib import Path

from rich.console import Console

from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import NO_HINTS
from harness.workspace.progress import MOST_HINTS, note_progress, progress_of
from harness.workspace.workspace import Workspace, open_workspace

LEADS_TO = ("where to look", "which function to read", "what to change")


def give_hint(workspace: Workspace, level: int) -> str:
    """Return the hint of a level, 1 to 3, and record that it was shown.

    Raises `UserError` if the previous hint was not shown yet.
    """
    hints = workspace.exercise.hints
    if hints == NO_HINTS:
        raise UserError(f"Your course gives no hints for {workspace.recipe}: try {workspace.command('triage')}.")
    given = progress_of(workspace.folder).hints
    if level > given + 1:
        following = workspace.command("hint", f" LEVEL={given + 1}")
        raise UserError(f"You have not seen hint {given + 1} yet, so hint {level} is not shown: first run {following}.")
    if level > given:
        note_progress(workspace.folder, hints=level)
    return hints[level - 1]


def show_hint(exercise: str, work: Path, level: int | None) -> None:
    """Print the hint of a level, or all hints shown so far if `level` is None, and the command for the next hint.

    Raises `UserError` if there is no workspace, or if the previous hint was not shown yet.
    """
    load_recipe(exercise)
    workspace = open_workspace(work, exercise)
    console = Console()
    for number in range(1, progress_of(workspace.folder).hints + 1) if level is None else [level]:
        text = give_hint(workspace, number)
        console.print(f"Hint {number} of {MOST_HINTS}, {LEADS_TO[number - 1]}:", style="bold", highlight=False)
        console.print(text, markup=False, highlight=False)
    given = progress_of(workspace.folder).hints
    if given == MOST_HINTS:
        line = workspace.command("verify")
    else:
        command = workspace.command("hint", f" LEVEL={given + 1}")
        line = f"{command}  # {LEADS_TO[given]}"
        console.print("Your submission says how many hints you asked for.", highlight=False)
    console.print("Next:", style="bold")
    console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
