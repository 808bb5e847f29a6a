"""Measures how far from the reference fix a sound fix may end on held-out data; writes `grader/score/bands.toml`.

A sound fix is not always the reference: a student may choose a smaller rate or another optimizer. The band of an
experiment is the largest distance of its sound edits, or of two seeds of the healthy experiment, rounded up.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grader.replay.replay import Replay
from grader.score.bands import BANDS, Band, load_bands
from grader.score.known_edits import load_shared_edits
from grader.selfcheck.runs import Runs, request_of
from harness.recipe import Recipe
from harness.run.settings import RunSettings

_EDIT_SEEDS = 3
# The accuracy on 500 held-out images moves by about this much if only the seed changes.
_ROUND_TO = 0.01
_HEAD = "# Measured by grader selfcheck --write; grader/score/bands.py explains the figures.\nformat_version = 1\n"


def write_bands(
    healthy: Mapping[tuple[str, str], Mapping[int, Replay]],
    carriers: Mapping[str, Recipe],
    runs: Runs,
    path: Path = BANDS,
) -> None:
    """Measure the band of each (experiment, data set) from its healthy runs by seed, and write them all to `path`.

    Bands of other data sets are kept: not every machine has MNIST.
    """
    bands = {(band.experiment, band.dataset): band for band in load_bands(path)}
    for (experiment, dataset), by_seed in healthy.items():
        bands[experiment, dataset] = measure_band(carriers[experiment], dataset, by_seed, runs)
    path.write_text(_HEAD + "".join(map(entry, bands.values())), encoding="utf-8")


def measure_band(recipe: Recipe, dataset: str, healthy: Mapping[int, Replay], runs: Runs) -> Band:
    """Return the band of a recipe's experiment on one data set; `healthy` are its sound runs by seed."""
    by_accuracy = _figures(next(iter(healthy.values())), "accuracy") is not None
    quantity = "accuracy" if by_accuracy else "loss"
    reference = {seed: _figures(replay, quantity) for seed, replay in healthy.items()}
    seeds = list(healthy)[:_EDIT_SEEDS]
    requests = {
        (edit.id, seed): request_of(
            recipe, edit.source(recipe.healthy_source()), RunSettings(seed=seed, dataset=dataset)
        )
        for edit in load_shared_edits(recipe.experiment)
        if edit.verdict == "sound"
        for seed in seeds
    }
    replays = runs.replays(f"sound edits of {recipe.experiment}", requests.values())
    edits: dict[str, list[tuple[float, float]]] = {}
    for (name, seed), request in requests.items():
        own, value = reference[seed], _figures(replays[request], quantity)
        if own is not None and value is not None:  # None: a network of another shape
            edits.setdefault(name, []).append((own, value))
    known = [value for value in reference.values() if value is not None]
    return band_of(recipe.experiment, dataset, known, edits.values(), by_accuracy=by_accuracy)


def band_of(
    experiment: str,
    dataset: str,
    reference: Sequence[float],
    edits: Iterable[Sequence[tuple[float, float]]],
    *,
    by_accuracy: bool,
) -> Band:
    """Return the band of the reference's figures over seeds and of pairs (reference, sound edit) of one seed.

    Raises `ValueError` for a figure that is not finite: such an edit is not sound.
    """
    pairs = [pair for own in edits for pair in own] + [(max(reference), min(reference))]
    if not by_accuracy:
        pairs[-1] = pairs[-1][::-1]
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError(f"a sound edit of {experiment} on {dataset} ended with a figure that is not finite")
    farthest = max(own - value if by_accuracy else value / own for own, value in pairs)
    limit = round(math.ceil(farthest / _ROUND_TO) * _ROUND_TO, 2)
    return Band(
        experiment=experiment,
        dataset=dataset,
        accuracy_below=limit if by_accuracy else None,
        loss_times=None if by_accuracy else limit,
        reference=(float(f"{min(reference):.4g}"), float(f"{max(reference):.4g}")),
    )


def entry(band: Band) -> str:
    """Return the lines of `bands.toml` for a band."""
    key, limit = (
        ("accuracy_below", band.accuracy_below)
        if band.accuracy_below is not None
        else ("loss_times", band.loss_times)
    )
    low, high = band.reference
    return (
        f'\n[[band]]\nexperiment = "{band.experiment}"\ndataset = "{band.dataset}"\n{key} = {limit:g}\n'
        f"reference = [{low:g}, {high:g}]\n"
    )


def _figures(replay: Replay, quantity: str) -> float | None:
    heldout = None if replay.evaluation is None else replay.evaluation.heldout
    value = getattr(heldout, quantity, None)
    return float(value) if isinstance(value, int | float) else None
