"""Which checks a break trips: measured here, stored in `solutions/<id>/measured.toml`, never typed by hand."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from grader.score.solutions import MEASURED, SOLUTIONS
from grader.selfcheck.runs import Runs, Subject
from grader.selfcheck.seeds import SeedRuns
from harness.checks import load_check
from harness.recipe import Recipe
from harness.run.settings import RunSettings
from harness.symptoms import judge_symptom

# The recipe's own seed comes first; these two show that an outcome does not hang on it.
MORE_SEEDS = (7, 1001)
_HEAD = "# Measured by `grader selfcheck --write`: what the checks find of the broken experiment.\n"


class Measured(NamedTuple):
    """What the checks find of a broken experiment, {check: outcome}: those that the break trips, and the others."""

    trips: Mapping[str, str]
    others: Mapping[str, str]


def measure(recipes: Sequence[Recipe], runs: Runs) -> dict[str, Measured]:
    """Run every check on the broken and the healthy experiment of each recipe; return what was found by recipe.

    A recipe on which the checks fail is left out.
    """
    subjects: dict[str, list[list[Subject]]] = {}
    for recipe in recipes:
        settings = [RunSettings(seed=seed, dataset=recipe.dataset) for seed in (recipe.seed, *MORE_SEEDS)]
        sources = (recipe.broken_source(), recipe.healthy_source())
        subjects[recipe.id] = [[(source, one) for one in settings] for source in sources]
    found = runs.outcomes("checks", [one for sides in subjects.values() for side in sides for one in side])
    return {
        recipe_id: measured(*([found[one] for one in side] for side in sides))
        for recipe_id, sides in subjects.items()
        if all(one in found for side in sides for one in side)
    }


def measured(broken: Sequence[Mapping[str, str]], healthy: Sequence[Mapping[str, str]]) -> Measured:
    """Return the outcomes of the broken experiment on which all seeds agree; both lists hold {check: outcome} by seed.

    A break trips a check whose outcome is unsound then, if all seeds agree on a sound one of the healthy experiment.
    """
    found = _agreed(broken)
    sound = {name for name, one in _agreed(healthy).items() if load_check(name).outcome(one).sound}
    tripped = {name for name in sound & found.keys() if not load_check(name).outcome(found[name]).sound}
    trips = {name: one for name, one in found.items() if name in tripped}
    return Measured(trips, {name: one for name, one in found.items() if name not in tripped})


def _agreed(outcomes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = outcomes
    return {name: one for name, one in first.items() if all(other.get(name) == one for other in others)}


def measured_toml(found: Measured) -> str:
    """Return the text of `measured.toml`."""
    # A line break never falls between a check and its outcome.
    words = " ".join(f'"{name}\0{one}",' for name, one in sorted(found.others.items()))
    listed = textwrap.indent(textwrap.fill(words, 106, break_on_hyphens=False), "    ").replace("\0", " ")
    lines = [f'{name} = "{one}"\n' for name, one in sorted(found.trips.items())]
    return f"{_HEAD}format_version = 1\noutcomes = [\n{listed}\n]\n\n[trips]\n" + "".join(lines)


def measured_path(recipe_id: str, solutions: Path = SOLUTIONS) -> Path:
    """Return where the measured trips of a recipe are stored."""
    return solutions / recipe_id / MEASURED


def differences(
    mine: SeedRuns, others: SeedRuns, my_trips: Mapping[str, str], their_trips: Mapping[str, str]
) -> list[str]:
    """Return what tells two recipes apart: checks that say different things, else symptoms of only one of them."""
    checks = [name for name in {**my_trips, **their_trips} if my_trips.get(name) != their_trips.get(name)]
    return checks or [
        f"{symptom.reduce} {symptom.signal}"
        for one, other in ((mine, others), (others, mine))
        for symptom in one.recipe.symptoms
        if not any(judge_symptom(first.records(), symptom).present for first, _ in other.broken.values())
    ]


def pair_differences(
    runs: Sequence[SeedRuns], tripped: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], list[str]]:
    """Return for each pair of recipes, on their own data sets, what tells them apart."""
    own = [item for item in runs if item.dataset == item.recipe.dataset]
    return {
        (one.recipe.id, two.recipe.id): differences(one, two, tripped[one.recipe.id], tripped[two.recipe.id])
        for one, two in combinations(own, 2)
    }
