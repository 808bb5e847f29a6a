"""`harness hint`: three hints per recipe, from where to look to what to change, given one after the other.

The hints are part of `recipe.toml`. How many a student asked for is noted beside the workspaces and written into the
manifest at submit: a note for student and instructor, not a proof.
"""

import json
from pathlib import Path

from rich.console import Console

from harness.errors import UserError, naming
from harness.files import write_whole
from harness.recipe import load_recipe
from harness.workspace import Workspace, open_workspace

_LEADS_TO = ("where to look", "which function to read", "what to change")
LEVELS = len(_LEADS_TO)
# The notes lie beside the workspaces, so starting an exercise over keeps them.
_NOTES = ".hints"


def hints_given(workspace: Workspace) -> int:
    """Return how many hints were given for this exercise; 0 if there is no readable note."""
    try:
        given = json.loads(_note(workspace).read_bytes())["given"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0
    return given if isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= LEVELS else 0


def give_hint(workspace: Workspace, level: int) -> str:
    """Return the hint of a level, 1 to 3, and note it as given.

    Raises `UserError` if the level before it was not given yet.
    """
    hints = load_recipe(workspace.recipe).hints
    given = hints_given(workspace)
    if level > given + 1:
        following = workspace.command("hint", f" LEVEL={given + 1}")
        raise UserError(f"Hint {level} comes after hint {given + 1}: {following}.")
    if level > given:
        note = _note(workspace)
        with naming(note):
            note.parent.mkdir(exist_ok=True)
            write_whole({note: (json.dumps({"format_version": 1, "given": level}) + "\n").encode()})
    return hints[level - 1]


def show_hint(exercise: str, work: Path, level: int | None) -> None:
    """Print the hint of a level, or without a level the hints given so far; then how to ask for the next.

    Raises `UserError` if there is no workspace, and for a level whose predecessor was not given yet.
    """
    load_recipe(exercise)
    workspace = open_workspace(work, exercise)
    console = Console()
    for number in range(1, hints_given(workspace) + 1) if level is None else [level]:
        text = give_hint(workspace, number)
        console.print(f"Hint {number} of {LEVELS}, {_LEADS_TO[number - 1]}:", style="bold", highlight=False)
        console.print(text, markup=False, highlight=False)
    given = hints_given(workspace)
    if given == LEVELS:
        line = workspace.command("verify")
    else:
        command = workspace.command("hint", f" LEVEL={given + 1}")
        line = f"{command}  # {_LEADS_TO[given]}; your submission says how many hints you asked for"
    console.print("Next:", style="bold")
    console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _note(workspace: Workspace) -> Path:
    return workspace.folder.parent / _NOTES / f"{workspace.recipe}.json"
