"""What a check command measures: a student's experiment, an exercise as handed out, or any script of that shape."""

from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError
from harness.exercise import DEFAULT_SEED, RunOptions, check_dataset
from harness.recipe import load_recipe
from harness.run.settings import RunSettings
from harness.workspace import SETTINGS, open_workspace, read_source

DEFAULT_DATASET = "digits"


@dataclass(frozen=True)
class Target:
    """An experiment and the settings of its run.

    `name` is what commands call it, `path` the file that errors name, None for an experiment as it was handed out.
    """

    name: str
    source: str
    settings: RunSettings
    path: Path | None

    @property
    def words(self) -> str:
        """What is measured, in one line."""
        which = f"{self.name}: {self.path or 'the experiment as it was handed out'}"
        which = self.name if str(self.path) == self.name else which
        return f"{which}, seed {self.settings.seed}, data {self.settings.dataset}"


def find_target(name: str, work: Path, options: RunOptions) -> Target:
    """Return the script of this name, or the experiment of an exercise: the workspace's, else as handed out.

    Raises `UserError` for an unknown exercise, a file or workspace that cannot be read, and data that do not fit.
    """
    if name.endswith(".py"):
        return _script(Path(name), options)
    recipe = load_recipe(name)
    if not (work / name / SETTINGS).is_file():
        return Target(name, recipe.broken_source(), options.settings(recipe), None)
    workspace = open_workspace(work, name)
    settings = options.settings(recipe, workspace.settings)
    return Target(name, read_source(workspace.experiment), settings, workspace.experiment)


def _script(path: Path, options: RunOptions) -> Target:
    if not path.is_file():
        raise UserError(f"There is no file {path}: name a training script, or an exercise.")
    dataset = options.dataset or DEFAULT_DATASET
    check_dataset(dataset, dataset)
    seed = DEFAULT_SEED if options.seed is None else options.seed
    settings = RunSettings(seed=seed, dataset=dataset, epochs=options.epochs, batch_size=options.batch_size)
    return Target(str(path), read_source(path), settings, path)
