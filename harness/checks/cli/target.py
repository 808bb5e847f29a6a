"""What a check command measures: a student's experiment, an exercise as handed out, or any script of that shape."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.exercise import DEFAULT_SEED, Asked, check_dataset
from harness.recipe import load_recipe
from harness.run.settings import RunSettings
from harness.workspace import SETTINGS, open_workspace, read_source

DEFAULT_DATASET = "digits"


@dataclass(frozen=True)
class Target:
    """An experiment and the settings of its run.

    `name` is what commands call it, `path` the file that errors name, if the source is that of a file.
    """

    name: str
    source: str
    settings: RunSettings
    page: Path
    path: Path | None = None
    script: bool = False

    @property
    def words(self) -> str:
        """What is measured, in one line."""
        which = str(self.path) if self.path else "the experiment as it was handed out"
        which = which if self.script else f"{self.name}: {which}"
        return f"{which}, seed {self.settings.seed}, data {self.settings.dataset}"

    def header(self) -> dict[str, Any]:
        """Return what is measured, for JSON."""
        exercise = {"exercise": self.name, "edited": self.path is not None}
        what = {"script": self.name} if self.script else exercise
        return {**what, "seed": self.settings.seed, "dataset": self.settings.dataset}


def find_target(name: str, work: Path, asked: Asked, *, untouched: bool = False) -> Target:
    """Return the script of this name, or the experiment of an exercise: the workspace's, else as handed out.

    Raises `UserError` for an unknown exercise, a file or workspace that cannot be read, and data that do not fit.
    """
    if name.endswith(".py"):
        return _script(Path(name), asked)
    recipe = load_recipe(name)
    if not (work / name / SETTINGS).is_file():
        return Target(name, recipe.broken_source(), asked.settings(recipe), Path(f"triage_{name}.html"))
    workspace = open_workspace(work, name)
    settings = asked.settings(recipe, workspace.settings)
    handed_out = workspace.broken_source() if workspace.has_run("broken") else recipe.broken_source()
    source = handed_out
    if not untouched and workspace.experiment.is_file():
        source = read_source(workspace.experiment)
    return Target(
        name=name,
        source=source,
        settings=settings,
        page=workspace.folder / "triage.html",
        path=workspace.experiment if source != handed_out else None,
    )


def _script(path: Path, asked: Asked) -> Target:
    if not path.is_file():
        raise UserError(f"There is no file {path}: name a training script, or an exercise.")
    dataset = asked.dataset or DEFAULT_DATASET
    check_dataset(dataset, dataset)
    seed = DEFAULT_SEED if asked.seed is None else asked.seed
    settings = RunSettings(seed=seed, dataset=dataset, epochs=asked.epochs, batch_size=asked.batch_size)
    page = Path(f"triage_{path.stem}.html")
    return Target(str(path), read_source(path), settings, page, path=path, script=True)
