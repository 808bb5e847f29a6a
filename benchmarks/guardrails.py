"""Measures how near sound runs come to the guardrails' soft limits, and how soon broken runs are reported.

    python -m benchmarks.guardrails [--seeds 10] [--write]

Sound runs are the healthy experiments, over the seeds, and their variants of benchmarks/bands.py on the first of
them; an MLP with batches of 8, and one of 30 epochs, are the hardest on the limits. Broken runs are all recipes'.
"""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import click

from benchmarks.bands import FIRST_SEED, VARIANTS, variant_sources
from benchmarks.portable import restart_portably
from harness.recipe import experiment_source, load_recipe, recipe_ids
from harness.run.guardrails import (
    EARLY_LOSS_RISE,
    GRADIENT_RISE,
    LOSS_RISE,
    VARIANCE_FLOOR,
    VARIANCE_RISE,
    Guardrails,
    Levels,
)
from harness.run.metrics_log import Record, read_metrics_log
from harness.run.settings import RunSettings

PAGE = Path(__file__).parent.parent / "docs" / "guardrails.md"
DATASET = {"digits_mlp": "digits", "shapes_cnn": "shapes", "digits_heat": "digits"}
LONG: Mapping[str, Mapping[str, int]] = {"batch 8": {"batch_size": 8}, "30 epochs": {"epochs": 30}}
HEADINGS = (
    "sound runs",
    "runs",
    "loss, first batches",
    "loss, later",
    "gradient norm",
    "variance",
    "reported",
)
LIMITS = (
    f"{EARLY_LOSS_RISE:g}", f"{LOSS_RISE:g}", f"{GRADIENT_RISE:g}",
    f"{VARIANCE_FLOOR:g} and {VARIANCE_RISE:g} times the first",
)  # fmt: skip


@dataclass(frozen=True)
class Reached:
    """The most that a run reached in the terms of the rules: three times its reference, and a variance."""

    early_loss: float = 0.0
    later_loss: float = 0.0
    gradient: float = 0.0
    variance: float = 0.0

    def most(self, other: "Reached") -> "Reached":
        """Return the larger of each."""
        return Reached(*(max(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)))


def reached(records: Iterable[Mapping[str, object]]) -> Reached:
    """Return the most that one run reached; epoch records are passed over."""
    levels, found = Levels(), Reached()
    for record in records:
        if "step" not in record:
            continue
        levels.add(record)
        loss = levels.loss.now / levels.loss.reference if levels.loss else 0.0
        now = Reached(
            early_loss=loss if levels.early else 0.0,
            later_loss=0.0 if levels.early else loss,
            gradient=levels.gradient.now / levels.gradient.reference if levels.gradient else 0.0,
            variance=levels.variance.now if levels.variance else 0.0,
        )
        found = found.most(now)
    return found


def first_report(records: Iterable[Mapping[str, object]]) -> int | None:
    """Return the step at which guardrails first speak, or None where they stay silent."""
    guardrails = Guardrails("warn")
    guardrails.replay(records)
    return guardrails.findings[0].step if guardrails.findings else None


def sound_row(label: str, runs: Sequence[Sequence[Record]]) -> str:
    """Return one line of the table of sound runs."""
    most = Reached()
    for records in runs:
        most = most.most(reached(records))
    spoke = sum(first_report(records) is not None for records in runs)
    figures = (f"{getattr(most, one.name):.3g}" for one in fields(most))
    return "| " + " | ".join([label, str(len(runs)), *figures, str(spoke)]) + " |"


def broken_row(label: str, runs: Sequence[Sequence[Record]]) -> str:
    """Return one line of the table of broken runs."""
    steps = [step for records in runs if (step := first_report(records)) is not None]
    when = f"{min(steps)} to {max(steps)}" if steps else "-"
    return f"| {label} | {len(runs)} | {len(steps)} | {when} |"


def page(sound: Sequence[str], broken: Sequence[str]) -> str:
    """Return the page `docs/guardrails.md`."""
    lines = [
        "# What the guardrails' limits rest on",
        "",
        "Written by `python -m benchmarks.guardrails --write`. Of each group of sound runs, the most that any of them",
        "reached, in the terms of the rules in `harness/run/guardrails.py`, and how many of them were reported.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *sound,
        "| *limit* | | " + " | ".join(f"*{limit}*" for limit in LIMITS) + " | |",
        "",
        "Broken runs: how many were reported, and at which steps first. Guardrails look for what explodes; of other",
        "breaks they say nothing.",
        "",
        "| broken runs | runs | reported | first at step |",
        "| --- | ---: | ---: | ---: |",
        *broken,
    ]
    return "\n".join(lines) + "\n"


def _run(
    source: str, dataset: str, seed: int, *, epochs: int | None = None, batch_size: int | None = None
) -> list[Record]:
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.trainer import train

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = RunSettings(
            seed=seed, dataset=dataset, guardrails="off", epochs=epochs, batch_size=batch_size
        )
        experiment = load_experiment(folder / "experiment.py", source)
        train(experiment, tensor_data(load_dataset(dataset)), settings, folder)
        return read_metrics_log(folder / "metrics.log")


@click.command()
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help=f"Write {PAGE.parent.name}/{PAGE.name} too.")
def main(seeds: int, write: bool) -> None:
    """Run every sound and every broken experiment, and print how near they come to the limits."""
    from harness.canonical_setup import apply_numerics

    apply_numerics("portable")
    every = range(FIRST_SEED, FIRST_SEED + seeds)
    sound, broken = [], []
    for name in VARIANTS:
        healthy, dataset = experiment_source(name), DATASET[name]
        sound.append(sound_row(name, [_run(healthy, dataset, seed) for seed in every]))
        for label, source in variant_sources(name).items():
            sound.append(sound_row(f"{name}, {label}", [_run(source, dataset, FIRST_SEED)]))
        for label, more in LONG.items() if name == "digits_mlp" else ():
            sound.append(sound_row(f"{name}, {label}", [_run(healthy, dataset, FIRST_SEED, **more)]))
        click.echo(f"{name} done", err=True)
    for recipe in map(load_recipe, recipe_ids()):
        source = recipe.broken_source()
        broken.append(broken_row(recipe.id, [_run(source, recipe.dataset, seed) for seed in every]))
        click.echo(f"{recipe.id} done", err=True)
    text = page(sound, broken)
    click.echo(text)
    if write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    restart_portably("benchmarks.guardrails")
    main()
