"""Measures what the checks find of a recipe's broken experiment, and writes `solutions/<id>/measured.toml`."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from grader.score.solutions import MEASURED, SOLUTIONS
from harness.checks import load_check, run_checks
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

# The recipe's own seed comes first; these two show that an outcome is no accident of it.
MORE_SEEDS = (7, 1001)


def agreed_outcomes(
    source: str, settings: RunSettings, seeds: Iterable[int], names: Sequence[str] | None = None
) -> dict[str, str]:
    """Return the outcome of each check, by default of all, if it is the same for all seeds.

    Raises as `harness.checks.run_checks`.
    """
    found: dict[str, str] | None = None
    for seed in seeds:
        findings = run_checks(source, replace(settings, seed=seed), names if found is None else list(found))
        outcomes = {name: finding.outcome for name, finding in findings.items()}
        found = {name: one for name, one in outcomes.items() if found is None or found.get(name) == one}
    return found or {}


def trips(
    broken_source: str, healthy_source: str, settings: RunSettings, seeds: Sequence[int]
) -> dict[str, str]:
    """Return the outcome of each check that is unsound on the broken experiment and sound on the healthy one.

    A check counts only if all seeds agree. Raises as `harness.checks.run_checks`.
    """
    return _tripped(agreed_outcomes(broken_source, settings, seeds), healthy_source, settings, seeds)


def write_measured(
    recipe_id: str, more_seeds: Sequence[int] = MORE_SEEDS, solutions: Path = SOLUTIONS
) -> None:
    """Measure a recipe on its own data and write its `measured.toml`, which `grader.score.solutions` reads."""
    recipe = load_recipe(recipe_id)
    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    seeds = (recipe.seed, *more_seeds)
    broken = agreed_outcomes(recipe.broken_source(), settings, seeds)
    tripped = _tripped(broken, recipe.healthy_source(), settings, seeds)
    others = {name: outcome for name, outcome in broken.items() if name not in tripped}
    lines = [
        "# `grader selfcheck` measures this: what the checks find of the broken experiment.",
        "format_version = 1",
    ]
    for title, table in (("outcomes", others), ("trips", tripped)):
        lines += ["", f"[{title}]", *(f'{name} = "{outcome}"' for name, outcome in sorted(table.items()))]
    (solutions / recipe_id / MEASURED).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tripped(
    broken: dict[str, str], healthy_source: str, settings: RunSettings, seeds: Sequence[int]
) -> dict[str, str]:
    unsound = {name: one for name, one in broken.items() if not load_check(name).outcome(one).sound}
    healthy = agreed_outcomes(healthy_source, settings, seeds, list(unsound))
    return {
        name: one
        for name, one in unsound.items()
        if name in healthy and load_check(name).outcome(healthy[name]).sound
    }
