"""Which checks a break trips: measured here, stored in `solutions/<id>/measured.toml`, never typed by hand."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from grader.score.solutions import MEASURED, SOLUTIONS
from grader.selfcheck.runs import Runs, Subject
from grader.selfcheck.seeds import SeedRuns
from harness.checks import load_check
from harness.recipe import Recipe
from harness.run.settings import RunSettings
from harness.symptoms import judge_symptom

# The recipe's own seed comes first; these two show that an outcome does not hang on it.
MORE_SEEDS = (7, 1001)
Outcomes = Sequence[Mapping[str, str]]  # by seed, {check: outcome}
_HEAD = "# Measured by `grader selfcheck --write`: what the checks find of the broken experiment.\n"


def measure(recipes: Sequence[Recipe], runs: Runs) -> dict[str, tuple[Outcomes, Outcomes]]:
    """Run every check on the broken and the healthy experiment of each recipe; return both by recipe.

    A recipe on which the checks fail is left out.
    """
    subjects: dict[str, list[list[Subject]]] = {}
    for recipe in recipes:
        settings = [RunSettings(seed=seed, dataset=recipe.dataset) for seed in (recipe.seed, *MORE_SEEDS)]
        sources = (recipe.broken_source(), recipe.healthy_source())
        subjects[recipe.id] = [[(source, one) for one in settings] for source in sources]
    found = runs.outcomes("checks", [one for sides in subjects.values() for side in sides for one in side])
    return {
        recipe_id: ([found[one] for one in broken], [found[one] for one in healthy])
        for recipe_id, (broken, healthy) in subjects.items()
        if all(one in found for one in (*broken, *healthy))
    }


def agreed(outcomes: Outcomes) -> dict[str, str]:
    """Return the outcomes on which all seeds agree."""
    first, *others = outcomes
    return {name: one for name, one in first.items() if all(other.get(name) == one for other in others)}


def trips(broken: Outcomes, healthy: Outcomes) -> dict[str, str]:
    """Return {check: outcome} of the checks that the break trips.

    All seeds agree on an unsound outcome of the broken experiment and on a sound one of the healthy experiment.
    """
    sound = {name for name, one in agreed(healthy).items() if load_check(name).outcome(one).sound}
    unsound = (item for item in agreed(broken).items() if not load_check(item[0]).outcome(item[1]).sound)
    return {name: one for name, one in unsound if name in sound}


def measured_toml(broken: Outcomes, healthy: Outcomes) -> str:
    """Return the text of `measured.toml`."""
    tripped = trips(broken, healthy)
    others = [f'"{name} {one}",' for name, one in sorted(agreed(broken).items()) if name not in tripped]
    # A line break never falls between a check and its outcome.
    listed = textwrap.indent(textwrap.fill(" ".join(one.replace(" ", "\0") for one in others), 106), "    ")
    lines = [f'{name} = "{one}"\n' for name, one in sorted(tripped.items())]
    text = listed.replace("\0", " ")
    return f"{_HEAD}format_version = 1\noutcomes = [\n{text}\n]\n\n[trips]\n" + "".join(lines)


def measured_path(recipe_id: str, solutions: Path = SOLUTIONS) -> Path:
    """Return where the measured trips of a recipe are stored."""
    return solutions / recipe_id / MEASURED


def differences(
    mine: SeedRuns, others: SeedRuns, my_trips: Mapping[str, str], their_trips: Mapping[str, str]
) -> list[str]:
    """Return what tells two recipes apart: checks that say different things, else symptoms of only one of them."""
    checks = [name for name in {**my_trips, **their_trips} if my_trips.get(name) != their_trips.get(name)]
    if checks:
        return checks
    return [
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
