"""Which checks a break trips: measured here, stored in `solutions/<id>/measured.toml`, never typed by hand."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from grader.score.solutions import SOLUTIONS
from grader.selfcheck.runs import Runs, Subject
from grader.selfcheck.seeds import SeedRuns
from grader.toml_file import read_table
from harness.checks.checks import find_check
from harness.recipe import Recipe
from harness.run.settings import RunSettings
from harness.symptoms import judge_symptom

SEEDS = (100, 101, 102)
Outcomes = Sequence[Mapping[str, str]]  # by seed, {check: outcome}
_HEAD = "# Measured by grader selfcheck --write: what each check says of the broken experiment, where it is unsound.\n"


def measure(recipes: Sequence[Recipe], runs: Runs) -> dict[str, Outcomes]:
    """Run every check on the broken and the healthy experiments; return the outcomes by their source."""
    subjects: list[Subject] = []
    for recipe in recipes:
        for source in (recipe.broken_source(), recipe.healthy_source()):
            subjects += [(source, RunSettings(seed=seed, dataset=recipe.dataset)) for seed in SEEDS]
    found: dict[str, list[Mapping[str, str]]] = {}
    for (source, _), outcomes in dict(zip(subjects, runs.outcomes("checks", subjects), strict=True)).items():
        found.setdefault(source, []).append(outcomes)
    return dict(found)


def trips(broken: Outcomes, healthy: Outcomes) -> dict[str, str]:
    """Return {check: outcome} of the checks that the break trips.

    All seeds agree on an unsound outcome of the broken experiment, and every healthy one is sound.
    """
    found = {}
    for name in broken[0]:
        outcomes = {outcome[name] for outcome in broken}
        tripped = len(outcomes) == 1 and not is_sound(name, broken[0][name])
        if tripped and all(is_sound(name, outcome[name]) for outcome in healthy):
            found[name] = broken[0][name]
    return found


def is_sound(check: str, outcome: str) -> bool:
    """Say whether this outcome of a check is sound."""
    return find_check(check).outcome(outcome).sound


def measured_toml(found: Mapping[str, str]) -> str:
    """Return the text of `measured.toml`."""
    lines = [f'{check} = "{outcome}"\n' for check, outcome in found.items()]
    return f"{_HEAD}format_version = 1\n\n[trips]\n" + "".join(lines)


def stored(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the trips in the recipe's `measured.toml`, {} if there is none."""
    path = measured_path(recipe_id, solutions)
    return dict(read_table(path).get("trips", {})) if path.is_file() else {}


def measured_path(recipe_id: str, solutions: Path = SOLUTIONS) -> Path:
    """Return where the measured trips of a recipe are stored."""
    return solutions / recipe_id / "measured.toml"


def apart(
    mine: SeedRuns, others: SeedRuns, my_trips: Mapping[str, str], their_trips: Mapping[str, str]
) -> list[str]:
    """Return what tells two recipes apart: checks that say different things, else symptoms of only one of them."""
    checks = [name for name in {**my_trips, **their_trips} if my_trips.get(name) != their_trips.get(name)]
    if checks:
        return checks
    return [*_only_in(mine, others), *_only_in(others, mine)]


def _only_in(mine: SeedRuns, others: SeedRuns) -> Iterator[str]:
    for symptom in mine.recipe.symptoms:
        found = [judge_symptom(first.records(), symptom) for first, _ in others.broken.values()]
        if not any(result.present for result in found):
            yield f"{symptom.reduce} {symptom.signal}"


def pairs_apart(
    runs: Sequence[SeedRuns], by_recipe: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], list[str]]:
    """Return for each pair of recipes, on their own data sets, what tells them apart."""
    own = [item for item in runs if item.dataset == item.recipe.dataset]
    return {
        (one.recipe.id, two.recipe.id): apart(one, two, by_recipe[one.recipe.id], by_recipe[two.recipe.id])
        for one, two in combinations(own, 2)
    }
