"""What every check of the method finds of every recipe and of the healthy experiments, over seeds.

    python -m benchmarks.instrument_matrix [--seed 42 --seed 1 ...] [--json FILE] [--write]

`--write` makes the table of docs/instruments.md. Exits 1 where a recipe cannot be told from another one, or from a
healthy experiment, by the outcomes alone.
"""

import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from benchmarks.guardrails import DATASET
from benchmarks.page import replace_section
from harness.checks.checks import find_check, load_checks, run_checks
from harness.recipe import experiment_source, load_recipe, recipe_ids
from harness.run.settings import RunSettings

PAGE = Path(__file__).parent.parent / "docs" / "instruments.md"
# That of the recipes, and two others.
SEEDS = (42, 1, 2)

Outcomes = Mapping[str, str]
Matrix = Mapping[str, Mapping[int, Outcomes]]
"""Outcome by check, by seed, by recipe or healthy experiment."""


def subjects() -> dict[str, tuple[str, str]]:
    """Return source and data set of all that is looked at: the recipes, then the healthy experiments."""
    found = {recipe.id: (recipe.broken_source(), recipe.dataset) for recipe in map(load_recipe, recipe_ids())}
    return found | {name: (experiment_source(name), dataset) for name, dataset in DATASET.items()}


def measure(names: Sequence[str], seeds: Sequence[int], checks: Sequence[str] | None = None) -> Matrix:
    """Return the outcomes; each subject and seed is measured in a process of its own."""
    known = subjects()
    matrix: dict[str, dict[int, Outcomes]] = {}
    for name in names:
        source, dataset = known[name]
        matrix[name] = {}
        for seed in seeds:
            click.echo(f"{name}, seed {seed}", err=True)
            matrix[name][seed] = run_checks(source, RunSettings(seed=seed, dataset=dataset), checks)
    return matrix


def confused(matrix: Matrix, healthy: Sequence[str] = tuple(DATASET)) -> list[tuple[str, str]]:
    """Return the pairs that have the same outcomes, on whichever seeds, and are not both healthy."""
    return [
        (first, second)
        for first, second in itertools.combinations(matrix, 2)
        if not {first, second} <= set(healthy)
        and any(one == other for one in matrix[first].values() for other in matrix[second].values())
    ]


def alarms(matrix: Matrix, healthy: Sequence[str] = tuple(DATASET)) -> Iterator[str]:
    """Yield what the checks found of healthy experiments that rules nothing out."""
    for name in healthy:
        for seed, outcomes in matrix.get(name, {}).items():
            for check, outcome in outcomes.items():
                if not find_check(check).outcome(outcome).sound:
                    yield f"{name}, seed {seed}: {check} {outcome}"


def table(matrix: Matrix) -> list[str]:
    """Return the lines of the table: a row for each check; what is not sound is bold."""
    lines = ["| check | " + " | ".join(matrix) + " |", "| --- |" + " --- |" * len(matrix)]
    for check in load_checks():
        cells = [_cell(check.id, [seed[check.id] for seed in matrix[name].values()]) for name in matrix]
        lines.append(f"| {check.id} | " + " | ".join(cells) + " |")
    return lines


def _cell(check: str, outcomes: Sequence[str]) -> str:
    words = {outcome: outcomes.count(outcome) for outcome in outcomes}
    return ", ".join(
        (word if find_check(check).outcome(word).sound else f"**{word}**")
        + (f" ({count})" if len(words) > 1 else "")
        for word, count in words.items()
    )


def section(matrix: Matrix) -> str:
    """Return the section of docs/instruments.md."""
    seeds = dict.fromkeys(seed for by_seed in matrix.values() for seed in by_seed)
    pairs = confused(matrix)
    told = (
        "No recipe has the outcomes of another one or of a healthy experiment, on any seeds."
        if not pairs
        else f"Not told apart: {'; '.join(' and '.join(pair) for pair in pairs)}."
    )
    found = list(alarms(matrix))
    runs = sum(len(matrix[name]) for name in DATASET if name in matrix)
    heard = (
        f"Of {runs} healthy ones, every outcome is sound."
        if not found
        else f"False alarms: {'; '.join(found)}."
    )
    lines = [
        "Written by `python -m benchmarks.instrument_matrix --write`: the outcome of each check for each recipe and",
        f"each healthy experiment, seeds {', '.join(map(str, seeds))}, on its own data. What is not sound is bold;",
        "where seeds differ, the number of them stands behind.",
        "",
        *table(matrix),
        "",
        f"{told} {heard}",
    ]
    return "\n".join(lines)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--seed", "seeds", type=int, multiple=True, default=SEEDS, show_default=True, help="Repeatable."
)
@click.option(
    "--json", "out", type=click.Path(dir_okay=False, path_type=Path), help="Write the outcomes too."
)
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}.")
def main(seeds: tuple[int, ...], out: Path | None, write: bool) -> None:
    """Make the matrix, and exit 1 where a recipe cannot be told apart."""
    matrix = measure(list(subjects()), seeds)
    if out is not None:
        out.write_text(json.dumps(matrix, indent=1) + "\n", encoding="utf-8")
    click.echo(section(matrix))
    if write:
        replace_section(PAGE, "matrix", section(matrix))
    sys.exit(1 if [*confused(matrix), *alarms(matrix)] else 0)


if __name__ == "__main__":
    main()
