"""Subjects for the tests of the instruments: miniature experiments, and the real recipes on their own data."""

from functools import cache
from pathlib import Path

from runs import MINI, mini_data

from harness.data.image_sets import Dataset, Split
from harness.data.loading import load_dataset
from harness.experiment import TensorSplit
from harness.instruments.subject import Subject
from harness.recipe import load_recipe
from harness.settings import RunSettings

load = cache(load_dataset)


def mini_subject(source: str = MINI, *, seed: int = 1) -> Subject:
    """Return a miniature experiment on 40 images of 6x6."""
    data = mini_data()

    def split(part: TensorSplit) -> Split:
        return Split(part.images.numpy(), part.labels.numpy())

    dataset = Dataset.of("digits", split(data.train), split(data.validation))
    return Subject(Path("experiment.py"), source, RunSettings(seed=seed, dataset="digits"), dataset)


def real_subject(recipe_id: str, *, healthy: bool = False, seed: int = 42) -> Subject:
    """Return a recipe's experiment, broken or healthy, on the recipe's own data."""
    recipe = load_recipe(recipe_id)
    source = recipe.healthy_source() if healthy else recipe.broken_source()
    settings = RunSettings(seed=seed, dataset=recipe.dataset)
    return Subject(Path("experiment.py"), source, settings, load(recipe.dataset))
