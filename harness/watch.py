"""`harness watch`: runs the edited experiment again each time it is saved, and shows it beside the runs before."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Stopped, UserError
from harness.exercise import Asked, verify_exercise
from harness.summary import Figures, run_figures
from harness.workspace import EXPERIMENT, Workspace, read_source

# Seconds between two looks at the file: soon enough for a person, and nothing to speak of for the machine. Looking
# works on every file system, network drives among them, and with editors that put another file in the place of one.
EVERY = 0.3


@dataclass(frozen=True)
class Watched:
    """What one save led to: the figures of the runs by name, in the order in which to show them, or the mistake.

    `columns` always has `broken`; `last` is the run before this one, `now` this one. With a `mistake` there is no run.
    """

    workspace: Workspace
    columns: dict[str, Figures]
    mistake: str | None = None


def watch(workspace: Workspace, show: Callable[[Watched], None], looks: Iterable[None]) -> None:
    """Run the experiment where it is not the one that ran last, at once and at each of `looks`; show what came of it.

    Returns when the looks end, or after Ctrl-C. A mistake in the experiment is shown, and it goes on. Raises
    `UserError` for a workspace whose broken run is not finished.
    """
    if not workspace.has_run("broken"):
        raise UserError(
            f"{workspace.folder} has no finished broken run: {workspace.command('exercise')} makes it."
        )
    columns = {"broken": run_figures(workspace.run_folder("broken"))}
    tried = workspace.broken_source()
    if workspace.has_run("fixed"):
        columns["now"] = run_figures(workspace.run_folder("fixed"))
        tried = read_source(workspace.run_folder("fixed") / EXPERIMENT)
    try:
        if _text(workspace.experiment) == tried:
            show(Watched(workspace, columns))
        for _ in looks:
            now = _text(workspace.experiment)
            if now is not None and now != tried:
                tried = now
                columns = _run(workspace, columns, show)
    except (Stopped, KeyboardInterrupt):
        return


def looking() -> Iterator[None]:
    """Yield again and again, with a pause between."""
    while True:
        yield
        time.sleep(EVERY)


def _run(
    workspace: Workspace, before: dict[str, Figures], show: Callable[[Watched], None]
) -> dict[str, Figures]:
    """Run the experiment as it now stands, and return the columns that the next run is shown beside."""
    earlier = {"broken": before["broken"]} | ({"last": before["now"]} if "now" in before else {})
    try:
        verify_exercise(workspace.recipe, workspace.folder.parent, Asked())
    except UserError as error:
        show(Watched(workspace, earlier, str(error)))
        return before
    columns = {**earlier, "now": run_figures(workspace.run_folder("fixed"))}
    show(Watched(workspace, columns))
    return columns


def _text(path: Path) -> str | None:
    """Return the text of the experiment; None while an editor has it away or has just emptied it, or it is no text."""
    try:
        return read_source(path) or None
    except (UserError, OSError):
        return None
