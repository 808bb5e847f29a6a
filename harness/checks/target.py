"""What a command looks at: the experiment that a student edits, or the one that was handed out, with its settings."""

from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.exercise import Asked
from harness.recipe import load_recipe
from harness.run.settings import RunSettings
from harness.workspace import (
    RESULT,
    SETTINGS,
    Workspace,
    make_command,
    open_workspace,
    read_source,
    source_hash,
)

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Target:
    """An exercise's experiment, edited or untouched, and the settings of its run; no workspace is needed.

    `checkpoint` is that of a finished run of this very source with these settings, where the workspace has one.
    """

    exercise: str
    edited: bool
    settings: RunSettings
    source: str
    source_path: Path | None
    workspace: Workspace | None
    checkpoint: Path | None

    @property
    def words(self) -> str:
        """What is looked at, in a few words."""
        which = str(self.source_path) if self.edited else "the experiment as it was handed out"
        return f"{self.exercise}: {which}, seed {self.settings.seed}, data {self.settings.dataset}"


def find_target(exercise: str, work: Path, asked: Asked, *, untouched: bool = False) -> Target:
    """Return the workspace's experiment or, without a workspace or where it is asked for, the untouched one.

    Raises `UserError` for an unknown exercise, a workspace that cannot be read, and data that do not fit.
    """
    recipe = load_recipe(exercise)
    workspace = None
    if (work / exercise / SETTINGS).is_file():
        workspace = open_workspace(work, exercise)
    settings = asked.settings(recipe, workspace.settings if workspace else None)
    if workspace is None:
        return Target(exercise, False, settings, recipe.broken_source(), None, None, None)
    handed_out = workspace.broken_source() if workspace.has_run("broken") else recipe.broken_source()
    source, path = handed_out, None
    if not untouched and workspace.experiment.is_file():
        source, path = read_source(workspace.experiment), workspace.experiment
    edited = source != handed_out
    checkpoint = _checkpoint_of(workspace, source) if settings == workspace.settings else None
    return Target(exercise, edited, settings, source, path if edited else None, workspace, checkpoint)


def _checkpoint_of(workspace: Workspace, source: str) -> Path | None:
    """Return the checkpoint of a finished run of this source, whichever run it was."""
    for run in ("fixed", "broken"):
        folder = workspace.run_folder(run)
        if not workspace.has_run(run) or not (folder / CHECKPOINT).is_file():
            continue
        if source_hash(read_source(folder / "experiment.py")) == source_hash(source):
            return folder / CHECKPOINT
    return None


def run_folder(name: str, work: Path) -> Path:
    """Return the folder of a finished run: a path, or `<exercise>/<run>` such as huge_lr/fixed.

    Raises `UserError` where there is no finished run.
    """
    exercise, _, run = name.partition("/")
    for folder in (Path(name), *([work / exercise / "runs" / run] if run else [])):
        if (folder / RESULT).is_file():
            return folder
    if run == "fixed" and (work / exercise / SETTINGS).is_file():
        raise UserError(
            f"{exercise} has no fixed run yet: {make_command('verify', work / exercise)} makes it."
        )
    raise UserError(
        f"There is no finished run {name!r}: name its folder, or an exercise and a run, such as huge_lr/broken."
    )
