"""Train an experiment in this process, broken or edited, for the pages that show measured runs."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.canonical_setup import canonical_setup
from harness.data.loading import load_dataset
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Edit, apply_edits, experiment_source
from harness.run.experiment import load_experiment, tensor_data
from harness.run.metrics_log import Record, batch_records, epoch_records, read_metrics_log
from harness.run.settings import RunSettings
from harness.run.training import train


class ShortRun(NamedTuple):
    """The log of a run: the records of its batches and of its epochs."""

    batches: Sequence[Record]
    epochs: Sequence[Record]

    def losses(self) -> list[float]:
        """Return the training loss of each step."""
        return [record["loss"] for record in self.batches]

    def accuracy(self) -> float:
        """Return the validation accuracy at the end of the run."""
        return float(self.epochs[-1]["val_accuracy"])


def train_broken(recipe_id: str, *edits: tuple[str, str], seed: int = 42, epochs: int | None = None) -> ShortRun:
    """Train the broken experiment of a recipe, with further edits (old text, new text)."""
    recipe = load_recipe(recipe_id)
    return train_source(recipe.broken_source(), recipe.dataset, edits, seed, epochs)


def train_healthy(
    experiment: str, *edits: tuple[str, str], dataset: str = "digits", seed: int = 42, epochs: int | None = None
) -> ShortRun:
    """Train a healthy experiment, with edits (old text, new text)."""
    return train_source(experiment_source(experiment), dataset, edits, seed, epochs)


def train_source(
    source: str, dataset: str, edits: Sequence[tuple[str, str]] = (), seed: int = 42, epochs: int | None = None
) -> ShortRun:
    """Train the program `source` after the edits. Raises `UserError` if a text to replace is not there once."""
    program = apply_edits(source, [Edit(find=old, replace=new) for old, new in edits], where="the page")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experiment.py")
        path.write_text(program, encoding="utf-8")
        settings = RunSettings(seed=seed, dataset=dataset, epochs=epochs)
        canonical_setup(seed)
        experiment = load_experiment(path, program)
        train(experiment, tensor_data(load_dataset(dataset)), settings, Path(folder))
        records = read_metrics_log(Path(folder, "metrics.log"))
    return ShortRun(list(batch_records(records)), list(epoch_records(records)))
