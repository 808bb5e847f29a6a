"""Measures how far from the reference fix a sound repair may end on held-out data, and writes grader/score/bands.toml.

    python -m benchmarks.bands [--seeds 10] [--cache FOLDER] [--write]

A sound repair is not always the reference: somebody chooses a learning rate a few times smaller, or another
optimizer. For each healthy experiment and data set, each of these variants and the healthy experiment itself is
trained over the seeds; the band is the largest distance from the reference's figure of the same seed, rounded up.
"""

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.portable import restart_portably
from harness.data import DATASETS
from harness.recipe import Edit, apply_edits, experiment_source

FIRST_SEED = 100
VARIANT_SEEDS = 3
# A reading of 500 held-out images moves by about this much when only the seed changes.
ROUND_TO = 0.01

_SGD = "torch.optim.SGD(model.parameters(), lr={lr}, momentum=0.9)"
VARIANTS: dict[str, dict[str, tuple[str, str]]] = {
    "digits_mlp": {
        "lr 0.02": (_SGD.format(lr=0.1), _SGD.format(lr=0.02)),
        "lr 0.05": (_SGD.format(lr=0.1), _SGD.format(lr=0.05)),
        "lr 0.2": (_SGD.format(lr=0.1), _SGD.format(lr=0.2)),
        "no momentum": (_SGD.format(lr=0.1), "torch.optim.SGD(model.parameters(), lr=0.1)"),
        "Adam": (_SGD.format(lr=0.1), "torch.optim.Adam(model.parameters(), lr=0.001, fused=True)"),
        "AdamW": (_SGD.format(lr=0.1), "torch.optim.AdamW(model.parameters(), lr=0.003, fused=True)"),
        "batch 32": ("BATCH_SIZE = 64", "BATCH_SIZE = 32"),
        "batch 128": ("BATCH_SIZE = 64", "BATCH_SIZE = 128"),
    },
    "shapes_cnn": {
        "lr 0.02": (_SGD.format(lr=0.05), _SGD.format(lr=0.02)),
        "lr 0.1": (_SGD.format(lr=0.05), _SGD.format(lr=0.1)),
        "Adam": (_SGD.format(lr=0.05), "torch.optim.Adam(model.parameters(), lr=0.003, fused=True)"),
        "batch 128": ("BATCH_SIZE = 64", "BATCH_SIZE = 128"),
    },
    "digits_heat": {
        "lr 0.0005": ("lr=0.001", "lr=0.0005"),
        "lr 0.002": ("lr=0.001", "lr=0.002"),
        "AdamW": ("torch.optim.Adam(", "torch.optim.AdamW("),
        "float32": ("AMP = True", "AMP = False"),
    },
}
PAIRS = [
    (experiment, dataset)
    for experiment, own in (("digits_mlp", "digits"), ("shapes_cnn", "shapes"), ("digits_heat", "digits"))
    for dataset in DATASETS
    if DATASETS[dataset] == DATASETS[own]
]


def heldout_figures(name: str, source: str, dataset: str, seed: int, cache: Path) -> dict[str, float]:
    """Train a source and return loss and, for classes, accuracy on the held-out split."""
    import io

    import numpy as np

    from grader.replay.data import heldout_archive
    from grader.replay.inside.evaluate import evaluate
    from harness.data.datasets import Dataset, Split
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.settings import RunSettings
    from harness.trainer import train

    data = load_dataset(dataset, cache=cache)
    with np.load(io.BytesIO(heldout_archive(dataset, cache)), allow_pickle=False) as arrays:
        unseen = Dataset.of(dataset, data.train, Split(arrays["images"], arrays["labels"]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        experiment = load_experiment(folder / "experiment.py", source)
        train(experiment, tensor_data(data), RunSettings(seed=seed, dataset=dataset), folder)
        healthy = load_experiment(folder / "healthy.py", experiment_source(name))
        _, split = healthy.load_data(tensor_data(unseen))
        found: dict[str, float] = evaluate(healthy, folder / "checkpoint.pt", {"heldout": split})["heldout"]
    return found


@dataclass(frozen=True)
class Measured:
    """What one band rests on: the reference's figures, and the farthest that anything sound ended from them."""

    by_accuracy: bool
    reference: list[float]
    farthest: str
    distance: float

    @property
    def limit(self) -> float:
        """The distance, rounded up."""
        return math.ceil(self.distance / ROUND_TO) * ROUND_TO


def band_of(reference: list[float], variants: Mapping[str, list[float]], *, by_accuracy: bool) -> Measured:
    """Return the band of the reference's figures over seeds and the variants' on the first of these seeds.

    A distance is what an accuracy lacks, or how many times a loss is the reference's. Raises `ValueError` for a
    figure that is not finite: such a variant is not sound, and no band may be drawn around it.
    """
    for name, values in {"the reference": reference, **variants}.items():
        if not all(map(math.isfinite, values)):
            raise ValueError(f"{name} ended with {values}: mend the variant, or leave it out.")
    low, high = min(reference), max(reference)
    farthest, most = "seeds", high - low if by_accuracy else high / low
    for name, values in variants.items():
        for own, value in zip(reference, values, strict=False):  # variants have fewer seeds
            distance = own - value if by_accuracy else value / own
            if distance > most:
                farthest, most = name, distance
    return Measured(by_accuracy, reference, farthest, most)


def entry(name: str, dataset: str, band: Measured) -> str:
    """Return the entry of one experiment on one data set, with what it rests on as a comment."""
    key = "accuracy_below" if band.by_accuracy else "loss_times"
    return (
        f"# {len(band.reference)} seeds; farthest: {band.farthest}, {band.distance:.4g}.\n"
        f'[[band]]\nexperiment = "{name}"\ndataset = "{dataset}"\n{key} = {band.limit:.2f}\n'
        f"reference = [{min(band.reference):.4g}, {max(band.reference):.4g}]\n"
    )


def variant_sources(name: str) -> dict[str, str]:
    """Return the sources of the sound variants of a healthy experiment, by label."""
    healthy = experiment_source(name)
    return {
        label: apply_edits(healthy, (Edit(find=find, replace=replace),), where=label)
        for label, (find, replace) in VARIANTS[name].items()
    }


def measure(name: str, dataset: str, seeds: int, cache: Path) -> str:
    """Train one experiment and its variants on one data set, and return the entry."""

    def figures(source: str, count: int) -> list[dict[str, float]]:
        return [heldout_figures(name, source, dataset, FIRST_SEED + index, cache) for index in range(count)]

    reference = figures(experiment_source(name), seeds)
    by_accuracy = reference[0]["accuracy"] is not None
    quantity = "accuracy" if by_accuracy else "loss"
    variants = {
        label: [found[quantity] for found in figures(source, min(VARIANT_SEEDS, seeds))]
        for label, source in variant_sources(name).items()
    }
    return entry(
        name, dataset, band_of([found[quantity] for found in reference], variants, by_accuracy=by_accuracy)
    )


@click.command()
@click.option("--seeds", default=10, show_default=True, help="How many seeds of the reference.")
@click.option("--cache", type=click.Path(path_type=Path), help="Where MNIST and CIFAR-10 lie.")
@click.option("--write", is_flag=True, help="Write grader/score/bands.toml.")
def main(seeds: int, cache: Path | None, write: bool) -> None:
    """Measure every band."""
    from grader.score.bands import BANDS
    from harness.canonical_setup import apply_numerics
    from harness.data.loading import default_cache

    apply_numerics("portable")
    head = (
        "# Made by `python -m benchmarks.bands --write`; grader/score/bands.py says what the figures mean.\n"
    )
    entries = [f"{head}format_version = 1\n"]
    for name, dataset in PAIRS:
        entries.append(measure(name, dataset, seeds, cache or default_cache()))
        click.echo(entries[-1])
    if write:
        BANDS.write_text("\n".join(entries), encoding="utf-8")


if __name__ == "__main__":
    restart_portably("benchmarks.bands")
    main()
