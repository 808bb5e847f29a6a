"""Where a fault may remain if no check finds one: the areas that no check judges completely.

The text depends only on the form of the experiment, so it reveals nothing about a hidden exercise. A test compares the
areas with the exercises whose fault no check finds (`solutions/<id>/measured.toml`).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.recipes.form import is_script
from harness.recipes.recipe import Area


class BlindSpot(NamedTuple):
    """A part of an area that no check judges: which part, where the code of it is, and a way to judge it by hand.

    place: the functions of an experiment with functions. A script has names of its own, so there it is ignored.
    """

    part: str
    place: str
    by_hand: str


_OF_FUNCTIONS: Mapping[Area, BlindSpot] = {
    "data": BlindSpot(
        "which examples are kept, and how often a class occurs",
        "load_data",
        "compare the number of examples of each class with the raw data",
    ),
    "model": BlindSpot(
        "the range of the outputs",
        "build_model",
        "compare the smallest and the greatest output with the smallest and the greatest target",
    ),
    "loss": BlindSpot(
        "how strongly the loss weighs classes, labels and penalties",
        "compute_loss",
        "compute the loss of one example by hand from its formula",
    ),
    "optimizer": BlindSpot(
        "the constants of the optimizer, and the schedule of the whole run, because checks run only its first steps",
        "build_optimizer and build_scheduler",
        "compare each constant with its usual value, and compare `lr` in metrics.log at the first, middle and last step"
        " with the schedule that you expect",
    ),
    "deployment": BlindSpot(
        "the answers of the service for a rare class, because checks train only a few steps",
        "predict",
        "compare the served accuracy with the validation accuracy in metrics.log",
    ),
}
_OF_SCRIPTS: Mapping[Area, BlindSpot] = {
    **_OF_FUNCTIONS,
    "pipeline": BlindSpot(
        "the effect of the augmentation on an example and on its target",
        "",
        "draw a few augmented examples with their targets",
    ),
    "model": BlindSpot(
        "the constants of layers, and how fast running statistics follow",
        "",
        "compare each constant with its default in the documentation of the layer",
    ),
    "loop": BlindSpot(
        "how many batches and updates an epoch has",
        "",
        "multiply the updates of an epoch in metrics.log by the batch size, and compare with the training examples",
    ),
    "evaluation": BlindSpot(
        "the formulas of the validation metrics",
        "",
        "compute each metric by hand for a few examples, and compare it with the log",
    ),
    "deployment": BlindSpot(
        "which weights are kept and used", "", "compare the epoch of the kept weights with the best epoch in the log"
    ),
}


def blind_spots(source: str) -> Mapping[Area, BlindSpot]:
    """Return the areas that no check judges completely for the experiment with this source."""
    if is_script(source):
        return _OF_SCRIPTS
    return {area: spot for area, spot in _OF_FUNCTIONS.items() if area != "deployment" or "\ndef predict(" in source}


def blind_spot_lines(source: str) -> Iterator[str]:
    """Yield a sentence for each of these areas: the part that no check judges, and how to judge it by hand."""
    for area, spot in blind_spots(source).items():
        where = f"read {spot.place}, and " if spot.place and not is_script(source) else ""
        yield f"{area}: {spot.part}. To judge it, {where}{spot.by_hand}."
