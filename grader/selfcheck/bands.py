"""Measure how far from the reference fix a sound fix may end on held-out data; write `grader/score/bands.toml`.

A sound fix is not always the reference: a student may choose a smaller rate or another optimizer. The band of an
experiment is the largest distance of its sound edits, or of two seeds of the healthy experiment, rounded up.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.replay.replay import Replay
from grader.score.bands import BANDS, Band, load_bands
from grader.score.known_edits import load_shared_edits
from grader.selfcheck.runs import Runs, request_of
from grader.selfcheck.seeds import SeedRuns
from grader.syntax.edit_size import changed_areas
from harness.recipe import Recipe
from harness.run.settings import RunSettings

_EDIT_SEEDS = 3
# The accuracy on 500 held-out images moves by about this much if only the seed changes.
_ROUND_TO = 0.01
_HEAD = "# Measured by grader selfcheck --write; grader/score/bands.py explains the figures.\nformat_version = 1\n"


def write_bands(
    seed_runs: Sequence[SeedRuns], proxies: Mapping[str, Recipe], runs: Runs, path: Path = BANDS
) -> None:
    """Measure the band of each experiment and data set from its healthy runs, and write them all to `path`.

    Bands of other data sets are kept: not every machine has MNIST.
    """
    bands = {(band.experiment, band.dataset): band for band in load_bands(path)}
    # All recipes of an experiment share its healthy runs.
    for item in {(item.recipe.experiment, item.dataset): item for item in seed_runs}.values():
        healthy = {seed: first for seed, (first, _) in item.healthy.items()}
        band = _measured(proxies[item.recipe.experiment], item.dataset, healthy, runs)
        bands[band.experiment, band.dataset] = band
    path.write_text(_HEAD + "".join(map(entry, bands.values())), encoding="utf-8")


def _measured(recipe: Recipe, dataset: str, healthy: Mapping[int, Replay], runs: Runs) -> Band:
    quantity = "loss" if _figure(next(iter(healthy.values())), "accuracy") is None else "accuracy"
    reference = {seed: _figure(replay, quantity) for seed, replay in healthy.items()}
    requests = [
        (seed, request_of(recipe, text, RunSettings(seed=seed, dataset=dataset)))
        for text in sound_edits(recipe)
        for seed in list(healthy)[:_EDIT_SEEDS]
    ]
    replays = runs.replays(f"sound edits of {recipe.experiment}", (request for _, request in requests))
    pairs = [(reference[seed], _figure(replays[request], quantity)) for seed, request in requests]
    known = [value for value in reference.values() if value is not None]
    edits = [(own, value) for own, value in pairs if own is not None and value is not None]
    return band_of(recipe.experiment, dataset, known, edits, by_accuracy=quantity == "accuracy")


def sound_edits(recipe: Recipe) -> list[str]:
    """Return the healthy experiment with each sound edit that keeps the network, into which the evaluator loads."""
    source = recipe.healthy_source()
    edited = [edit.source(source) for edit in load_shared_edits(recipe.experiment) if edit.verdict == "sound"]
    return [text for text in edited if "model" not in changed_areas(source, text)]


def band_of(
    experiment: str,
    dataset: str,
    reference: Sequence[float],
    edits: Sequence[tuple[float, float]],
    *,
    by_accuracy: bool,
) -> Band:
    """Return the band of the reference's figures over seeds and of pairs (reference, sound edit) of one seed.

    Raises `ValueError` for a figure that is not finite: such an edit is not sound.
    """
    low, high = min(reference), max(reference)
    pairs = [*edits, (high, low) if by_accuracy else (low, high)]
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError(f"a sound edit of {experiment} on {dataset} ended with a figure that is not finite")
    farthest = max(own - value if by_accuracy else value / own for own, value in pairs)
    limit = round(math.ceil(farthest / _ROUND_TO) * _ROUND_TO, 2)
    return Band(
        experiment=experiment,
        dataset=dataset,
        accuracy_below=limit if by_accuracy else None,
        loss_times=None if by_accuracy else limit,
        reference=(float(f"{low:.4g}"), float(f"{high:.4g}")),
    )


def entry(band: Band) -> str:
    """Return the lines of `bands.toml` for a band."""
    # A string, number or list of JSON is one of TOML, too.
    table = band.model_dump(exclude_none=True).items()
    return "\n[[band]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table)


def _figure(replay: Replay, quantity: str) -> float | None:
    heldout = None if replay.evaluation is None else replay.evaluation.heldout
    value = getattr(heldout, quantity, None)
    return float(value) if isinstance(value, int | float) else None
