"""`harness watch`: runs the edited experiment each time it is saved, and shows it beside the runs before."""

import time
from collections.abc import Callable, Iterable, Iterator

from harness.errors import Stopped, UserError
from harness.exercise import Asked, verify_exercise
from harness.summary import Figures, run_figures
from harness.workspace import EXPERIMENT, Workspace, read_source

# Seconds between two looks at the file. Looking works on every file system, network drives among them, and with
# editors that replace a file instead of writing to it.
EVERY = 0.3

# Called with the figures of the runs by name (`broken`, `last`, `now`), and the mistake if there was no run.
Show = Callable[[Workspace, dict[str, Figures], str | None], None]


def watch(workspace: Workspace, show: Show, looks: Iterable[None]) -> None:
    """Run the experiment whenever it differs from the one that ran last, now and at each of `looks`.

    A mistake in the experiment is shown, and the watch goes on. Returns when the looks end, or after Ctrl-C. Raises
    `UserError` for a workspace without a finished broken run.
    """
    if not workspace.has_run("broken"):
        raise UserError(
            f"{workspace.folder} has no finished broken run: {workspace.command('exercise')} makes it."
        )
    runs = {"broken": run_figures(workspace.run_folder("broken"))}
    tried = workspace.broken_source()
    if workspace.has_run("fixed"):
        runs["now"] = run_figures(workspace.run_folder("fixed"))
        tried = read_source(workspace.run_folder("fixed") / EXPERIMENT)
    try:
        if _source(workspace) == tried:
            show(workspace, runs, None)
        for _ in looks:
            source = _source(workspace)
            if source is None or source == tried:
                continue
            tried = source
            earlier = {"broken": runs["broken"]} | ({"last": runs["now"]} if "now" in runs else {})
            try:
                verify_exercise(workspace.recipe, workspace.folder.parent, Asked())
            except UserError as error:
                show(workspace, earlier, str(error))
                continue
            runs = {**earlier, "now": run_figures(workspace.run_folder("fixed"))}
            show(workspace, runs, None)
    except (Stopped, KeyboardInterrupt):
        return


def looking() -> Iterator[None]:
    """Yield again and again, with a pause between."""
    while True:
        yield
        time.sleep(EVERY)


def _source(workspace: Workspace) -> str | None:
    """Return the text of the experiment, or None while an editor has moved or emptied it."""
    try:
        return read_source(workspace.experiment) or None
    except (UserError, OSError):
        return None
