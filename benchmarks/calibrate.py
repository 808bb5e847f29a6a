"""Runs every recipe, broken and healthy, over many seeds and data sets, and prints what its thresholds rest on.

    python -m benchmarks.calibrate [--seeds 10] [--recipe huge_lr] [--cache FOLDER] [--write]

Exit status 1 where a broken run lacks a declared symptom, a healthy one shows it, or a probe is wrong.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks.portable import restart_portably
from harness.data import DATASETS
from harness.errors import UserError
from harness.metrics_log import Record, read_metrics_log
from harness.recipe import Recipe, load_recipe, recipe_ids
from harness.settings import RunSettings
from harness.symptoms import judge_symptom

FIRST_SEED = 100
PAGE = Path(__file__).parent.parent / "docs" / "calibration.md"


@dataclass(frozen=True)
class Row:
    """One quantity of one recipe on one data set: its values over seeds, broken and healthy, and what was asked."""

    recipe: str
    dataset: str
    quantity: str
    bound: str
    broken: list[float | None]
    healthy: list[float | None]
    wrong: int


def _records(
    recipe: Recipe, source: str, dataset: str, seed: int, cache: Path | None, folder: Path
) -> list[Record]:
    from harness.data.loading import load_dataset
    from harness.experiment import tensor_data
    from harness.load_experiment import load_experiment
    from harness.trainer import train

    data = tensor_data(load_dataset(dataset, cache=cache))
    experiment = load_experiment(folder / "experiment.py", source)
    train(experiment, data, RunSettings(seed=seed, dataset=dataset), folder)
    return read_metrics_log(folder / "metrics.log")


def _probe(
    recipe: Recipe, source: str, dataset: str, seed: int, cache: Path | None
) -> list[tuple[float, bool]]:
    from harness.data.loading import load_dataset
    from harness.experiment import tensor_data
    from harness.load_experiment import load_experiment
    from harness.probes import run_probe

    data = tensor_data(load_dataset(dataset, cache=cache))
    experiment = load_experiment(Path("experiment.py"), source)
    results = [run_probe(probe, experiment, data, seed) for probe in recipe.probes]
    return [(result.value, result.passed) for result in results]


def calibrate(recipe: Recipe, dataset: str, seeds: range, cache: Path | None) -> list[Row]:
    """Run one recipe on one data set and return a row for each symptom, observation and probe."""
    sources = {"broken": recipe.broken_source(), "healthy": recipe.healthy_source()}
    records: dict[str, list[list[Record]]] = {"broken": [], "healthy": []}
    probes: dict[str, list[list[tuple[float, bool]]]] = {"broken": [], "healthy": []}
    with tempfile.TemporaryDirectory() as scratch:
        for seed in seeds:
            for name, source in sources.items():
                records[name].append(_records(recipe, source, dataset, seed, cache, Path(scratch)))
                probes[name].append(_probe(recipe, source, dataset, seed, cache))
    rows = []
    for symptom in (*recipe.symptoms, *recipe.observations):
        results = {name: [judge_symptom(log, symptom) for log in logs] for name, logs in records.items()}
        wrong = sum(not result.present for result in results["broken"])
        expected = symptom in recipe.observations
        wrong += sum(result.present != expected for result in results["healthy"])
        bounds = [f"> {symptom.above:g}"] if symptom.above is not None else []
        bounds += [f"< {symptom.below:g}"] if symptom.below is not None else []
        values = {name: [result.value for result in judged] for name, judged in results.items()}
        quantity = f"{'observation: ' if expected else ''}{symptom.reduce} {symptom.signal}"
        rows.append(
            Row(recipe.id, dataset, quantity, " ".join(bounds), values["broken"], values["healthy"], wrong)
        )
    for index, probe in enumerate(recipe.probes):
        measured = {name: [result[index] for result in results] for name, results in probes.items()}
        wrong = sum(not passed for _, passed in measured["healthy"])
        if index == 0:  # a break need not fail every probe, but one
            wrong += sum(all(passed for _, passed in results) for results in probes["broken"])
        values = {name: [value for value, _ in pairs] for name, pairs in measured.items()}
        bound = f"healthy < {probe.below:g}"
        rows.append(
            Row(recipe.id, dataset, f"probe {probe.kind}", bound, values["broken"], values["healthy"], wrong)
        )
    metric = "val_accuracy" if records["healthy"][0][-1]["val_accuracy"] is not None else "val_loss"
    final = {name: [log[-1][metric] for log in logs] for name, logs in records.items()}
    rows.append(Row(recipe.id, dataset, f"last {metric}", "", final["broken"], final["healthy"], 0))
    return rows


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.4g} to {max(known):.4g}" if known else "-"


def _table(rows: list[Row], seeds: int) -> Table:
    table = Table(title=f"{seeds} seeds: range over seeds, and how many runs are not as declared")
    for column in ("recipe", "data", "quantity", "symptom if", "broken", "healthy", "wrong"):
        table.add_column(column, no_wrap=True)
    for row in rows:
        cells = (row.recipe, row.dataset, row.quantity, row.bound, _span(row.broken), _span(row.healthy))
        table.add_row(*cells, str(row.wrong), style="red" if row.wrong else None)
    return table


def _markdown(rows: list[Row], seeds: int) -> str:
    lines = [
        "# Calibration",
        "",
        f"Written by `python -m benchmarks.calibrate --write`: the recipes below, broken and healthy, on {seeds}",
        "seeds and each data set that was there. A range is that of all seeds; *wrong* counts the runs that are",
        "not as the recipe declares.",
        "",
        "| recipe | data | quantity | symptom if | broken | healthy | wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = (
            row.recipe,
            row.dataset,
            row.quantity,
            row.bound,
            _span(row.broken),
            _span(row.healthy),
            row.wrong,
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(min=1))
@click.option("--recipe", "only", multiple=True, help="Only this recipe; may be given more than once.")
@click.option("--data", "only_data", multiple=True, help="Only this data set; may be given more than once.")
@click.option(
    "--cache", type=click.Path(file_okay=False, path_type=Path), help="Where MNIST and CIFAR-10 lie."
)
@click.option("--write", is_flag=True, help=f"Write {PAGE.parent.name}/{PAGE.name} too.")
def main(
    seeds: int, only: tuple[str, ...], only_data: tuple[str, ...], cache: Path | None, write: bool
) -> None:
    """Run the calibration and print its table."""
    if write and (only or only_data):
        raise click.UsageError("--write makes the whole page: leave --recipe and --data out.")
    from harness.data.loading import load_dataset
    from harness.numerics import apply_numerics

    apply_numerics("portable")
    console = Console(width=160)
    rows: list[Row] = []
    for recipe in map(load_recipe, only or recipe_ids()):
        for dataset, shape in DATASETS.items():
            if shape != DATASETS[recipe.dataset] or (only_data and dataset not in only_data):
                continue
            try:
                load_dataset(dataset, cache=cache)
            except UserError as error:
                console.print(f"{recipe.id} on {dataset}: skipped ({error})", markup=False)
                continue
            found = calibrate(recipe.on(dataset), dataset, range(FIRST_SEED, FIRST_SEED + seeds), cache)
            console.print(_table(found, seeds))
            rows += found
    if write:
        PAGE.write_text(_markdown(rows, seeds), encoding="utf-8")
    wrong = sum(row.wrong for row in rows)
    console.print(f"{len(rows)} quantities, {wrong} runs not as declared")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    restart_portably("benchmarks.calibrate")
    main()
