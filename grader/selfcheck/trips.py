"""Measures which checks a break trips, and writes `solutions/<id>/measured.toml`."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from grader.score.solutions import MEASURED, SOLUTIONS
from harness.checks import Finding, load_check, run_checks
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

# The recipe's own seed comes first; these two show that an outcome is no accident of it.
MORE_SEEDS = (7, 1001)


def trips(
    broken_source: str, healthy_source: str, settings: RunSettings, seeds: Iterable[int]
) -> dict[str, str]:
    """Return the outcome of each check that is unsound on the broken experiment and sound on the healthy one.

    A check counts only if all seeds agree. Raises as `harness.checks.run_checks`.
    """
    found: dict[str, str] | None = None
    for seed in seeds:
        here = replace(settings, seed=seed)
        broken = run_checks(broken_source, here, None if found is None else list(found))
        unsound = {name: one.outcome for name, one in broken.items() if not _sound(name, one)}
        healthy = run_checks(healthy_source, here, list(unsound))
        tripped = {name: outcome for name, outcome in unsound.items() if _sound(name, healthy[name])}
        found = tripped if found is None else dict(found.items() & tripped.items())
    return dict(sorted((found or {}).items()))


def _sound(name: str, finding: Finding) -> bool:
    return load_check(name).outcome(finding.outcome).sound


def measure_trips(recipe_id: str, more_seeds: Iterable[int] = MORE_SEEDS) -> dict[str, str]:
    """Return what a recipe's break trips, on its own data under several seeds."""
    recipe = load_recipe(recipe_id)
    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    return trips(recipe.broken_source(), recipe.healthy_source(), settings, (recipe.seed, *more_seeds))


def write_trips(recipe_id: str, found: dict[str, str], solutions: Path = SOLUTIONS) -> None:
    """Write what a break trips; `grader.score.solutions.trips_of` reads it."""
    lines = [
        "# Measured by `grader selfcheck`: which checks the break trips.",
        "format_version = 1",
        "",
        "[trips]",
    ]
    lines += [f'{name} = "{outcome}"' for name, outcome in sorted(found.items())]
    (solutions / recipe_id / MEASURED).write_text("\n".join(lines) + "\n", encoding="utf-8")
