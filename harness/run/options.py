"""The command-line options of a run, and their defaults."""

import dataclasses
from dataclasses import dataclass

from harness.data import DATASETS
from harness.errors import UserError, suggestion
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import Recipe, load_recipes
from harness.run.settings import RunSettings

DEFAULT_SEED = 42

DEFAULT_EXPERIMENT = "digits_mlp"
# The data sets of the healthy experiments that no exercise breaks yet.
UNUSED = {
    "cells_unet": "cells",
    "char_gpt": "tales",
    "dates_seq2seq": "dates",
    "demand_forecast": "demand",
    "digits_contrastive": "digits",
    "digits_mixup": "digits",
    "digits_vae": "digits",
    "grammar_lora": "grammar",
    "orders_table": "shipments",
    "pole_policy": "pole",
    "rings_diffusion": "rings",
    "shapes_ddp": "shapes",
}


@dataclass(frozen=True)
class RunOptions:
    """The command-line options of a run. None means the recipe's own value."""

    seed: int | None = None
    dataset: str | None = None
    device: str | None = None
    epochs: int | None = None
    batch_size: int | None = None

    def settings(self, recipe: Recipe, default: RunSettings | None = None) -> RunSettings:
        """Return the settings of a run: `default`, or the settings of the recipe, changed by these options."""
        default = default or RunSettings(seed=recipe.seed, dataset=recipe.dataset)
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        settings = dataclasses.replace(default, **given)
        check_dataset(settings.dataset, recipe.dataset)
        return settings


def check_dataset(name: str, default: str) -> None:
    """Raise `UserError` if the data set is unknown, or if its inputs have another form than the inputs of `default`."""
    if name not in DATASETS:
        raise UserError(f"There is no data set {name!r}: {suggestion(name, list(DATASETS))}")
    if DATASETS[name] != DATASETS[default]:
        fitting = [other for other, form in DATASETS.items() if form == DATASETS[default]]
        raise UserError(
            f"This experiment cannot read {name}. It reads {DATASETS[default]}: choose from {', '.join(fitting)}."
        )


def default_dataset(break_id: str, experiment: str | None) -> str:
    """Return the data set on which a recipe or a healthy experiment runs by default."""
    if break_id != "none":
        return load_recipe(break_id).dataset
    datasets = {**UNUSED, **{recipe.experiment: recipe.dataset for recipe in load_recipes()[0]}}
    return datasets.get(experiment or DEFAULT_EXPERIMENT, "digits")
