"""Measures how far from the reference fix a sound repair may end on held-out data, and writes grader/bands.toml.

    python -m benchmarks.bands [--seeds 10] [--cache FOLDER] [--write]

A sound repair is not always the reference: somebody chooses a learning rate a few times smaller, or another
optimizer. For each healthy experiment and data set, each of these variants and the healthy experiment itself is
trained over the seeds; the band is the largest distance from the reference's figure of the same seed, rounded up.
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from harness.data import DATASETS
from harness.environment import run_environment
from harness.recipe import Edit, apply_edits, experiment_source

_READY = "TRAINWRECK_BANDS"
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

    from grader.heldout_data import heldout_archive
    from grader.inside.evaluate import evaluate
    from harness.data.image_sets import Dataset, Split
    from harness.data.loading import load_dataset
    from harness.experiment import tensor_data
    from harness.load_experiment import load_experiment
    from harness.settings import RunSettings
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


def measure(name: str, dataset: str, seeds: int, cache: Path) -> str:
    """Return the entry of one experiment on one data set, with what it rests on as a comment."""
    healthy = experiment_source(name)
    reference = [heldout_figures(name, healthy, dataset, FIRST_SEED + index, cache) for index in range(seeds)]
    accuracies = [figures["accuracy"] for figures in reference]
    by_accuracy = accuracies[0] is not None
    quantity = "accuracy" if by_accuracy else "loss"
    values = [figures[quantity] for figures in reference]
    spread = max(values) - min(values) if by_accuracy else max(values) / min(values)
    worst, which = spread, "seeds"
    for label, (find, replace) in VARIANTS[name].items():
        source = apply_edits(healthy, (Edit(find=find, replace=replace),), where=label)
        for index in range(min(VARIANT_SEEDS, seeds)):
            value = heldout_figures(name, source, dataset, FIRST_SEED + index, cache)[quantity]
            distance = values[index] - value if by_accuracy else value / values[index]
            if distance > worst:
                worst, which = distance, label
    band = math.ceil(worst / ROUND_TO) * ROUND_TO
    key = "accuracy_below" if by_accuracy else "loss_times"
    return (
        f"# Reference {quantity} over {seeds} seeds: {min(values):.4g} to {max(values):.4g};"
        f" farthest: {which}, {worst:.4g}.\n"
        f'[[band]]\nexperiment = "{name}"\ndataset = "{dataset}"\n{key} = {band:.2f}\n'
    )


@click.command()
@click.option("--seeds", default=10, show_default=True, help="How many seeds of the reference.")
@click.option("--cache", type=click.Path(path_type=Path), help="Where MNIST and CIFAR-10 lie.")
@click.option("--write", is_flag=True, help="Write grader/bands.toml.")
def main(seeds: int, cache: Path | None, write: bool) -> None:
    """Measure every band."""
    if os.environ.get(_READY) is None:
        command = [sys.executable, "-m", "benchmarks.bands", *sys.argv[1:]]
        environment = {**run_environment("portable"), _READY: "1"}
        environment.pop("PYTHONSAFEPATH")
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    from grader.bands import BANDS
    from harness.data.loading import default_cache
    from harness.numerics import apply_numerics

    apply_numerics("portable")
    head = "# Made by `python -m benchmarks.bands --write`; grader/bands.py says what the figures mean.\n"
    entries = [f"{head}format_version = 1\n"]
    for name, dataset in PAIRS:
        entries.append(measure(name, dataset, seeds, cache or default_cache()))
        click.echo(entries[-1])
    if write:
        BANDS.write_text("\n".join(entries), encoding="utf-8")


if __name__ == "__main__":
    main()
