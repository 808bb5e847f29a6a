"""Every recipe over seeds: broken runs show its symptoms, healthy runs do not, and both repeat to the byte."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from grader.replay.replay import Replay
from grader.replay.request import Request
from grader.score.belief import same_bytes
from grader.selfcheck.runs import Runs, request_of
from harness.data import DATASETS
from harness.data.loading import load_dataset
from harness.errors import UserError
from harness.recipe import Recipe, Symptom
from harness.run.settings import RunSettings
from harness.symptoms import judge_symptom

FIRST_SEED = 100


@dataclass(frozen=True)
class SeedRuns:
    """The runs of a recipe on one data set, by seed; each was made twice."""

    recipe: Recipe
    dataset: str
    broken: Mapping[int, tuple[Replay, Replay]]
    healthy: Mapping[int, tuple[Replay, Replay]]

    @property
    def sides(self) -> Mapping[str, Mapping[int, tuple[Replay, Replay]]]:
        """The broken and the healthy runs by name."""
        return {"broken": self.broken, "healthy": self.healthy}


def run_seeds(
    recipes: Sequence[Recipe], proxies: Mapping[str, Recipe], seeds: int, runs: Runs
) -> list[SeedRuns]:
    """Run every recipe, broken and healthy, twice on each seed and data set.

    `proxies` holds one recipe of each experiment. Its healthy runs stand for those of all recipes of the
    experiment, which share them.
    """

    def requests(recipe: Recipe, source: str, dataset: str) -> Mapping[int, tuple[Request, Request]]:
        every = [RunSettings(seed=seed, dataset=dataset) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
        return {
            one.seed: (request_of(recipe, source, one), request_of(recipe, source, one, repetition=1))
            for one in every
        }

    wanted = []
    for recipe in recipes:
        proxy = proxies[recipe.experiment]
        for dataset in _data_sets_for(recipe):
            broken = requests(recipe, recipe.broken_source(), dataset)
            wanted.append((recipe, dataset, broken, requests(proxy, proxy.healthy_source(), dataset)))
    pairs = (pair for *_, broken, healthy in wanted for pair in (*broken.values(), *healthy.values()))
    made = runs.replays("runs over seeds", chain.from_iterable(pairs))
    return [
        SeedRuns(
            recipe.on(dataset),
            dataset,
            {seed: (made[one], made[two]) for seed, (one, two) in broken.items()},
            {seed: (made[one], made[two]) for seed, (one, two) in healthy.items()},
        )
        for recipe, dataset, broken, healthy in wanted
    ]


def _data_sets_for(recipe: Recipe) -> Iterator[str]:
    """Yield the recipe's data set and the others of its shape that are on this machine."""
    for name, shape in DATASETS.items():
        if shape == DATASETS[recipe.dataset]:
            try:
                load_dataset(name)
            except UserError:  # MNIST or CIFAR-10 was not fetched
                continue
            yield name


def quantity_row(runs: SeedRuns, symptom: Symptom) -> tuple[str, ...]:
    """Return (data set, quantity, bound, range over broken runs, range over healthy runs)."""
    bounds = [f"> {symptom.above:g}"] if symptom.above is not None else []
    bounds += [f"< {symptom.below:g}"] if symptom.below is not None else []
    steps = "" if symptom.steps is None else f", {symptom.steps[0]} to {symptom.steps[1]}"
    spans = []
    for side in runs.sides.values():
        values = [judge_symptom(first.records(), symptom).value for first, _ in side.values()]
        known = [value for value in values if value is not None]
        spans.append(f"{min(known):.4g} to {max(known):.4g}" if known else "-")
    return (runs.dataset, f"{symptom.reduce} {symptom.signal}{steps}", " ".join(bounds), *spans)


def problems_of(runs: SeedRuns) -> Iterator[str]:
    """Yield what is not as the recipe declares: runs that fail or do not repeat, symptoms absent or present."""
    for name, side in runs.sides.items():
        for seed, (first, again) in side.items():
            where = f"{runs.recipe.id} on {runs.dataset}, seed {seed}, {name} run"
            if first.status != "OK":
                yield f"{where}: {first.message}"
                continue
            if not same_bytes(first, again):
                yield f"{where}: it does not repeat to the byte"
            expected = [(symptom, name == "broken") for symptom in runs.recipe.symptoms]
            expected += [(observation, True) for observation in runs.recipe.observations]
            for item, present in expected:
                found = judge_symptom(first.records(), item)
                if found.value is None:
                    yield f"{where}: the log has no {item.signal}"
                elif found.present != present:
                    yield f"{where}: {item.reduce} {item.signal} is {found.value:.6g} ({item.says})"
