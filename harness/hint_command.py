"""`harness hint`: shows one hint, or which ones were given and how to ask for the next."""

import shlex
from pathlib import Path

from rich.console import Console

from harness.hints import LEVELS, give_hint, hints_given, load_hints
from harness.workspace import Workspace, open_workspace

_LEADS_TO = ("where to look", "which function to read", "what to change")


def show_hint(exercise: str, work: Path, level: int | None) -> None:
    """Print the hint of a level; without one, those given before, and how to ask for the next.

    Raises `UserError` where there is no workspace to note it in, and for a level before the ones below it.
    """
    load_hints(exercise)
    workspace = open_workspace(work, exercise)
    console = Console()
    if level is None:
        for given in range(1, hints_given(workspace) + 1):
            _show(console, workspace, given)
    else:
        _show(console, workspace, level)
    _show_next(console, workspace)


def _show(console: Console, workspace: Workspace, level: int) -> None:
    text = give_hint(workspace, level)
    console.print(f"Hint {level} of {LEVELS}, {_LEADS_TO[level - 1]}:", style="bold", highlight=False)
    console.print(text, markup=False, highlight=False)


def _show_next(console: Console, workspace: Workspace) -> None:
    given = hints_given(workspace)
    if given == LEVELS:
        lines = [workspace.command("verify")]
    else:
        work = workspace.folder.parent
        place = "" if work == Path("work") else f" --work {shlex.quote(str(work))}"
        command = f"harness hint {workspace.recipe} --level {given + 1}{place}"
        lines = [f"{command} ({_LEADS_TO[given]}; what you hand in says how many you asked for)"]
    console.print("Next:", style="bold")
    for line in lines:
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
