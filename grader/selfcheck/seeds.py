"""Run every recipe with several seeds, and verify its symptoms and that its runs repeat byte for byte.

Broken runs must show the symptoms, and healthy runs must not show them. `write_bands` measures by how much a correct
fix may be worse than the reference fix on held-out data, because a student may choose a smaller learning rate or
another optimizer. This distance is called the band of an experiment. It is the largest distance between the metrics of
the reference fix and of known correct edits, or between two seeds of the healthy experiment, rounded up.
"""

import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

from grader.replay.replay import Replay
from grader.replay.request import Request
from grader.score.evidence import same_bytes
from grader.score.measurements import BANDS, Band, load_bands
from grader.selfcheck.calibration import Quantity, trip_differences
from grader.selfcheck.runs import Runs, SubjectChecks, request_of
from grader.syntax.edit_size import changed_areas
from harness.checks import checks_for, load_check
from harness.checks.core.outcomes import MEASURED
from harness.data import DATASETS
from harness.data.loading import load_dataset
from harness.errors import UserError
from harness.formats.toml_file import read_table
from harness.recipes.cases import SEEDS, Sound
from harness.recipes.form import is_script
from harness.recipes.known_edits import load_shared_edits
from harness.recipes.recipe import SOLUTIONS, Recipe, Symptom
from harness.run.settings import RunSettings
from harness.run.symptoms import judge_symptom
from harness.submission.check_run import diagnostic_fault

FIRST_SEED = 100
_EDIT_SEEDS = 3
# The number of seeds with which each experiment runs twice. Other tests check determinism more thoroughly.
_REPEATED = 1
# Bands are rounded up to a multiple of this number. With another seed, the accuracy on 500 held-out images changes by
# about as much.
_ROUND_TO = 0.01
# The smallest band. Even if all known runs classify every held-out example correctly, another correct fix may be wrong
# on 1 example in 100. For 300 examples, the statistical rule of three allows 3 errors.
_NARROWEST = 0.01
_HEAD = (
    "# How much worse than the reference fix a healthy fix may be. The command grader selfcheck --write measures these"
    " values,\n# and the class Band in grader/score/measurements.py explains them.\nformat_version = 1\n"
)
# Every check runs with the recipe's seed and with these two seeds. The checks that find a break, and all checks on the
# healthy experiment, also run with additional seeds.
MORE_SEEDS = (7, 1001)
_SOUND_HEAD = (
    "# Measured by `grader selfcheck --write`: what the checks find of each healthy experiment and decoy.\n"
    "format_version = 1\n\n[outcomes]\n"
)
_TRIPS_HEAD = "# Measured by `grader selfcheck --write`: what the checks find of the broken experiment.\n"


@dataclass(frozen=True)
class SeedRuns:
    """The runs of a recipe on one data set: {seed: pair of replays} for broken and for healthy runs.

    For the first seed, the pair consists of two runs. For other seeds, it consists of the same run twice.
    """

    recipe: Recipe
    dataset: str
    broken: Mapping[int, tuple[Replay, Replay]]
    healthy: Mapping[int, tuple[Replay, Replay]]

    @property
    def sides(self) -> Mapping[str, Mapping[int, tuple[Replay, Replay]]]:
        """The broken and the healthy runs: {"broken" or "healthy": {seed: pair of replays}}."""
        return {"broken": self.broken, "healthy": self.healthy}


def run_seeds(recipes: Sequence[Recipe], seeds: int, runs: Runs) -> list[SeedRuns]:
    """Make the broken and the healthy run of every recipe with each seed on each data set; repeat the first seed."""

    def requests(recipe: Recipe, source: str, dataset: str) -> Mapping[int, tuple[Request, Request]]:
        every = [RunSettings(seed=seed, dataset=dataset) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]
        again = [int(number < _REPEATED) for number in range(seeds)]
        return {
            one.seed: (request_of(recipe, source, one), request_of(recipe, source, one, repetition=repetition))
            for one, repetition in zip(every, again, strict=True)
        }

    wanted = []
    for recipe in recipes:
        for dataset in _data_sets_for(recipe):
            broken = requests(recipe, recipe.broken_source(), dataset)
            wanted.append((recipe, dataset, broken, requests(recipe, recipe.healthy_source(), dataset)))
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
    """Yield the recipe's data set, and the other data sets on this machine whose examples have the same form.

    A script has constants for its own data set alone.
    """
    if is_script(recipe.healthy_source()):
        yield recipe.dataset
        return
    for name, form in DATASETS.items():
        if form == DATASETS[recipe.dataset]:
            try:
                load_dataset(name)
            except UserError:  # MNIST or CIFAR-10 was not downloaded
                continue
            yield name


def quantity_of(runs: SeedRuns, symptom: Symptom) -> Quantity:
    """Return the quantity that a symptom computes, with its range in the broken runs and in the healthy runs."""
    bounds = [f"> {symptom.above:g}"] if symptom.above is not None else []
    bounds += [f"< {symptom.below:g}"] if symptom.below is not None else []
    steps = "" if symptom.steps is None else f", {symptom.steps[0]} to {symptom.steps[1]}"
    spans = {}
    for name, side in runs.sides.items():
        values = [judge_symptom(first.records(), symptom).value for first, _ in side.values()]
        known = [value for value in values if value is not None]
        spans[name] = (min(known), max(known)) if known else None
    quantity = f"{symptom.reduce} {symptom.signal}{steps}"
    return Quantity(data=runs.dataset, quantity=quantity, present_if=" ".join(bounds), **spans)


def problems_of(runs: SeedRuns) -> Iterator[str]:
    """Yield contradictions to a recipe: a run fails or does not repeat, or a symptom is wrongly present or absent."""
    for name, side in runs.sides.items():
        for seed, (first, again) in side.items():
            where = f"{runs.recipe.id} on {runs.dataset}, seed {seed}, {name} run"
            if first.status != "OK":
                yield f"{where}: {first.message}"
                continue
            if not same_bytes(first, again):
                yield f"{where}: a second run gives different bytes"
            if fault := diagnostic_fault("its log", first.records()):
                yield f"{where}: {fault}"
            expected = [(symptom, name == "broken") for symptom in runs.recipe.symptoms]
            expected += [(observation, True) for observation in runs.recipe.observations]
            for item, present in expected:
                found = judge_symptom(first.records(), item)
                if found.value is None:
                    yield f"{where}: the log has no {item.signal}"
                elif found.present != present:
                    yield f"{where}: {item.reduce} {item.signal} is {found.value:.6g} ({item.says})"


def write_bands(seed_runs: Sequence[SeedRuns], runs: Runs, path: Path = BANDS) -> None:
    """Measure the band (allowed distance) for each experiment and data set from healthy runs, and write it to `path`.

    The bands for data sets that are not measured now are kept, because not every machine has MNIST.
    """
    bands = {(band.experiment, band.dataset): band for band in load_bands(path)}
    # All recipes for an experiment have the same healthy runs.
    for item in {(item.recipe.experiment, item.dataset): item for item in seed_runs}.values():
        healthy = {seed: first for seed, (first, _) in item.healthy.items()}
        band = _measure_band(item.recipe, item.dataset, healthy, runs)
        bands[band.experiment, band.dataset] = band
    path.write_text(_HEAD + "".join(map(entry, bands.values())), encoding="utf-8")
    load_bands.cache_clear()


def _measure_band(recipe: Recipe, dataset: str, healthy: Mapping[int, Replay], runs: Runs) -> Band:
    quantity = "loss" if _figure(next(iter(healthy.values())), "accuracy") is None else "accuracy"
    reference = {seed: _figure(replay, quantity) for seed, replay in healthy.items()}
    # Include the recipe's seed, because known edits are judged with this seed.
    seeds = dict.fromkeys((*list(healthy)[:_EDIT_SEEDS], recipe.seed))
    own, *requests = [
        (seed, request_of(recipe, text, RunSettings(seed=seed, dataset=dataset)))
        for text in (recipe.healthy_source(), *sound_edits(recipe))
        for seed in reversed(seeds)
    ]
    replays = runs.replays(f"sound edits of {recipe.experiment}", (request for _, request in (own, *requests)))
    reference[recipe.seed] = _figure(replays[own[1]], quantity)
    pairs = [(reference[seed], _figure(replays[request], quantity)) for seed, request in requests]
    known = [value for value in reference.values() if value is not None]
    edits = [(own, value) for own, value in pairs if own is not None and value is not None]
    return band_of(recipe.experiment, dataset, known, edits, by_accuracy=quantity == "accuracy")


def sound_edits(recipe: Recipe) -> list[str]:
    """Return the sources of the healthy experiment after each sound edit (harmless change).

    Edits of the network are left out, because the grader could not evaluate their weights.
    """
    source = recipe.healthy_source()
    edited = [edit.source(source) for edit in load_shared_edits(recipe.experiment) if edit.verdict == "sound"]
    return [text for text in edited if "model" not in changed_areas(source, text)]


def band_of(
    experiment: str,
    dataset: str,
    reference: Sequence[float],
    edits: Sequence[tuple[float, float]],
    *,
    by_accuracy: bool,
) -> Band:
    """Return the band (allowed distance from the reference fix) that accepts all these metrics.

    reference: the metrics of the reference fix with several seeds. edits: pairs of metrics (reference fix, sound edit)
    with the same seed. Raises `ValueError` for a non-finite metric, because such an edit is not harmless.
    """
    low, high = min(reference), max(reference)
    pairs = [*edits, (high, low) if by_accuracy else (low, high)]
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError(f"an edit of {experiment} that is listed as sound ended with a non-finite metric on {dataset}")
    # A factor means nothing for a loss that can be zero or negative: the limit of such a loss is a difference.
    kind = "accuracy_below" if by_accuracy else "loss_times" if min(chain(*pairs)) > 0 else "loss_above"
    distances = {
        "accuracy_below": (own - value for own, value in pairs),
        "loss_times": (value / own for own, value in pairs),
        "loss_above": (value - own for own, value in pairs),
    }
    farthest = max(distances[kind])
    limit = max(round(math.ceil(farthest / _ROUND_TO) * _ROUND_TO, 2), _NARROWEST)
    return Band(
        experiment=experiment, dataset=dataset, reference=(float(f"{low:.4g}"), float(f"{high:.4g}")), **{kind: limit}
    )


def entry(band: Band) -> str:
    """Return the lines that describe a band in `bands.toml`."""
    # A JSON string, number or list is also valid TOML.
    table = band.model_dump(exclude_none=True).items()
    return "\n[[band]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table)


def _figure(replay: Replay, quantity: str) -> float | None:
    heldout = None if replay.evaluation is None else replay.evaluation.heldout
    value = getattr(heldout, quantity, None)
    return float(value) if isinstance(value, int | float) else None


class MeasuredOutcomes(NamedTuple):
    """The outcomes of the checks on a broken experiment.

    trips: {check: outcome} of the checks that find the break. others: {check: outcome} of the other checks. alarms: the
    checks that wrongly find a fault in the healthy experiment.
    """

    trips: Mapping[str, str]
    others: Mapping[str, str]
    alarms: Sequence[str] = ()


def measure(recipes: Sequence[Recipe], seeds: int, runs: Runs) -> dict[str, MeasuredOutcomes]:
    """Run the checks on the broken and the healthy experiment of each recipe, and return {recipe: outcomes}.

    A check finds a break only if it does so with all seeds; there are `seeds`, but at least three. A recipe is left out
    if its checks cannot run.
    """
    more = range(FIRST_SEED, FIRST_SEED + seeds - len(MORE_SEEDS) - 1)

    def subjects(recipe: Recipe, source: str, own: Iterable[int], names: Sequence[str]) -> list[SubjectChecks]:
        return [SubjectChecks(source, RunSettings(seed=seed, dataset=recipe.dataset), tuple(names)) for seed in own]

    broken, healthy = {}, {}
    for recipe in recipes:
        first = (recipe.seed, *MORE_SEEDS)
        broken[recipe.id] = subjects(recipe, recipe.broken_source(), first, checks_for(recipe.broken_source()))
        healthy[recipe.id] = subjects(
            recipe, recipe.healthy_source(), (*first, *more), checks_for(recipe.healthy_source())
        )
    found = dict(runs.outcomes("checks", [*chain(*broken.values(), *healthy.values())]))
    for recipe in recipes:
        if all(one in found for one in broken[recipe.id]):
            unsound = [
                name
                for name, one in _agreed_outcomes([found[one] for one in broken[recipe.id]]).items()
                if _bad(name, one)
            ]
            broken[recipe.id] += subjects(recipe, recipe.broken_source(), more if unsound else (), unsound)
    found |= runs.outcomes("checks that trip", [*chain(*broken.values())])
    return {
        id: summarize_outcomes([found[one] for one in broken[id]], [found[one] for one in healthy[id]])
        for id in broken
        if all(one in found for one in (*broken[id], *healthy[id]))
    }


def summarize_outcomes(broken: Sequence[Mapping[str, str]], healthy: Sequence[Mapping[str, str]]) -> MeasuredOutcomes:
    """Return the outcomes of the broken experiment on which all seeds agree.

    A check finds the break if its outcome reports a fault in the broken experiment, and if it finds no fault in the
    healthy experiment with any seed.

    broken, healthy: {check: outcome} for each seed.
    """
    found = _agreed_outcomes(broken)
    alarms = {name for one in healthy for name, outcome in one.items() if _bad(name, outcome)}
    tripped = {name for name in found if _bad(name, found[name])} - alarms
    trips = {name: one for name, one in found.items() if name in tripped}
    return MeasuredOutcomes(trips, {name: one for name, one in found.items() if name not in tripped}, sorted(alarms))


def _bad(name: str, outcome: str) -> bool:
    return not load_check(name).outcome(outcome).sound


def _agreed_outcomes(outcomes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return {check: outcome} for the checks that give the same outcome with all seeds."""
    first, *others = outcomes
    return {name: one for name, one in first.items() if all(other.get(name, one) == one for other in others)}


def measured_toml(found: MeasuredOutcomes) -> str:
    """Return the text of `measured.toml`."""
    lines = [f'{name} = "{one}"\n' for name, one in sorted(found.trips.items())]
    return f"{_TRIPS_HEAD}format_version = 1\noutcomes = {_list_outcomes(found.others)}\n\n[trips]\n" + "".join(lines)


def _list_outcomes(outcomes: Mapping[str, str]) -> str:
    """Return a TOML list with an entry "check outcome" for each check."""
    # A line break is never between a check and its outcome.
    words = " ".join(f'"{name}\0{one}",' for name, one in sorted(outcomes.items()))
    filled = textwrap.indent(textwrap.fill(words, 110, break_on_hyphens=False), "    ").replace("\0", " ")
    return f"[\n{filled}\n]"


def write_sound(experiments: Sequence[Sound], path: Path, runs: Runs, *, whole: bool) -> None:
    """Write `sound.toml`: the outcome of each check on each healthy experiment and decoy, if all seeds agree.

    whole: whether to measure all experiments again, or only the experiments that are not in the file yet.
    """
    known = {} if whole else {name: dict(map(str.split, one)) for name, one in read_table(path)["outcomes"].items()}
    found = {**known, **_sound_outcomes([one for one in experiments if one.name not in known], runs)}
    lines = [f"{name} = {_list_outcomes(one)}\n" for name, one in sorted(found.items())]
    path.write_text(_SOUND_HEAD + "".join(lines), encoding="utf-8")


def _sound_outcomes(experiments: Sequence[Sound], runs: Runs) -> dict[str, Mapping[str, str]]:
    subjects = {
        one.name: [
            SubjectChecks(one.source(), RunSettings(seed, one.dataset), checks_for(one.source())) for seed in SEEDS
        ]
        for one in experiments
    }
    found = runs.outcomes("sound experiments", [*chain(*subjects.values())])
    return {name: _agreed_outcomes([found[one] for one in own]) for name, own in subjects.items()}


def measured_path(recipe_id: str, solutions: Path = SOLUTIONS) -> Path:
    """Return the path of a recipe's `measured.toml`."""
    return solutions / recipe_id / MEASURED


def differences(
    mine: SeedRuns, others: SeedRuns, my_checks: MeasuredOutcomes, their_checks: MeasuredOutcomes
) -> list[str]:
    """Return the differences between two recipes.

    The differences are the checks that find only one of the two breaks, or that find both with different outcomes. If
    there are no such checks, return the symptoms that only one recipe has. If there are no such symptoms, return the
    checks that find neither break but have different outcomes, which occur in different experiments.
    """
    checks = trip_differences(my_checks.trips, their_checks.trips)
    symptoms = (
        f"{symptom.reduce} {symptom.signal}"
        for one, other in ((mine, others), (others, mine))
        for symptom in one.recipe.symptoms
        if not any(judge_symptom(first.records(), symptom).present for first, _ in other.broken.values())
    )
    ours, theirs = my_checks.others, their_checks.others
    sound = [f"{name}, sound" for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]]
    return checks or list(symptoms) or sorted(sound)


def pair_differences(
    runs: Sequence[SeedRuns], measured: Mapping[str, MeasuredOutcomes]
) -> dict[tuple[str, str], list[str]]:
    """Return {pair of recipes: differences} for all pairs. Each recipe is compared on its own data set."""
    own = [item for item in runs if item.dataset == item.recipe.dataset]
    return {
        (one.recipe.id, two.recipe.id): differences(one, two, measured[one.recipe.id], measured[two.recipe.id])
        for one, two in combinations(own, 2)
    }
