"""Part `seeds`: every recipe, broken and healthy, over seeds and data sets, against all that it declares."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from grader.score.solutions import mechanisms_of
from grader.selfcheck.progress import counting
from grader.selfcheck.section import Row, Section, Table
from grader.selfcheck.trial import Outcome, Trial
from grader.selfcheck.trial_memory import TrialMemory
from grader.selfcheck.trials import repeat_trials, run_trials
from harness.checks import load_check
from harness.data import DATASETS
from harness.data.loading import load_dataset
from harness.errors import UserError
from harness.recipe import Recipe, Symptom
from harness.symptoms import judge_symptom, signal_values

FIRST_SEED = 100
Run = Literal["broken", "healthy"]
RUNS: tuple[Run, ...] = ("broken", "healthy")


@dataclass(frozen=True)
class Figure:
    """What was measured in one run, and whether it is as declared."""

    seed: int
    run: Run
    value: float | None
    right: bool


@dataclass(frozen=True)
class Quantity:
    """One quantity of one recipe on one data set: its figures over seeds, and what was asked of it."""

    recipe: str
    dataset: str
    name: str
    bound: str
    figures: tuple[Figure, ...]

    def span(self, run: Run) -> str:
        """Return the range over the seeds."""
        known = [figure.value for figure in self.figures if figure.run == run and figure.value is not None]
        return f"{min(known):.4g} to {max(known):.4g}" if known else "-"

    def wrong(self) -> Iterator[str]:
        """Yield a sentence for each run that is not as declared."""
        for figure in self.figures:
            if not figure.right:
                value = "not in the log" if figure.value is None else f"{figure.value:.6g}"
                yield (
                    f"{self.recipe} on {self.dataset}, seed {figure.seed}, {figure.run} run:"
                    f" {self.name} is {value} ({self.bound})"
                )


@dataclass(frozen=True)
class Pair:
    """A recipe on a data set of its shape, with its runs by seed: each made twice."""

    recipe: Recipe
    dataset: str
    runs: Mapping[tuple[int, Run], tuple[Outcome, Outcome]]

    def seeds(self) -> list[int]:
        """Return the seeds, in order."""
        return sorted({seed for seed, _ in self.runs})

    def first(self, seed: int, run: Run) -> Outcome:
        """Return the first of two runs, the one with checks."""
        return self.runs[seed, run][0]

    def repeated(self) -> int:
        """Return how many runs repeat to the byte."""
        return sum(first.repeats(again) for first, again in self.runs.values())


def data_sets_for(recipe: Recipe, cache: Path) -> tuple[list[str], list[str]]:
    """Return the data sets of a recipe's shape that are there, and a sentence for each that is not."""
    there, missing = [], []
    for name, shape in DATASETS.items():
        if shape == DATASETS[recipe.dataset]:
            try:
                load_dataset(name, cache=cache)
                there.append(name)
            except UserError as error:
                missing.append(f"{name} was left out: {error}")
    return there, missing


def seeds_section(
    recipes: Sequence[Recipe], *, seeds: int, jobs: int, cache: Path, memory: TrialMemory
) -> Section:
    """Run every recipe on so many seeds and each data set of its shape, twice, and judge what came of it."""
    wanted: list[tuple[Recipe, str]] = []
    notes: dict[str, None] = {}
    for recipe in recipes:
        there, missing = data_sets_for(recipe, cache)
        wanted += [(recipe.on(dataset), dataset) for dataset in there]
        notes |= dict.fromkeys(missing)
    trials = _trials(wanted, range(FIRST_SEED, FIRST_SEED + seeds))
    with counting("seeds, first runs") as progress:
        first = run_trials(list(trials.values()), jobs=jobs, cache=cache, progress=progress, memory=memory)
    with counting("seeds, once more") as progress:
        again = repeat_trials(list(trials.values()), jobs=jobs, cache=cache, progress=progress, memory=memory)
    pairs = []
    for recipe, dataset in wanted:
        mine = {
            (seed, run): trials[_source(recipe, run), dataset, seed]
            for seed in range(FIRST_SEED, FIRST_SEED + seeds)
            for run in RUNS
        }
        outcomes = {key: (first[trial], again[trial]) for key, trial in mine.items()}
        pairs.append(Pair(recipe, dataset, outcomes))
    return _section(pairs, seeds, tuple(notes))


def _source(recipe: Recipe, run: Run) -> str:
    return recipe.broken_source() if run == "broken" else recipe.healthy_source()


def _trials(wanted: Sequence[tuple[Recipe, str]], seeds: range) -> dict[tuple[str, str, int], Trial]:
    """Return the trials by source, data set and seed: recipes that break one experiment share its healthy run."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for recipe, dataset in wanted:
        for run in RUNS:
            measured = kinds.setdefault((_source(recipe, run), dataset), set())
            measured |= set(mechanisms_of(recipe.id))
    return {
        (source, dataset, seed): Trial(source, dataset, seed, tuple(sorted(measured)))
        for (source, dataset), measured in kinds.items()
        for seed in seeds
    }


def quantities(pair: Pair) -> Iterator[Quantity]:
    """Yield each symptom, observation and tripped check of a recipe, and the last validation figure."""
    for symptom in pair.recipe.symptoms:
        yield _of_symptom(pair, symptom, in_healthy=False)
    for observation in pair.recipe.observations:
        yield _of_symptom(pair, observation, in_healthy=True)
    for name, tripped in mechanisms_of(pair.recipe.id).items():
        figures = []
        for seed in pair.seeds():
            broken, healthy = (pair.first(seed, run).checks.get(name) for run in RUNS)
            figures.append(Figure(seed, "broken", None, broken == tripped))
            sound = healthy is not None and load_check(name).outcome(healthy).sound
            figures.append(Figure(seed, "healthy", None, sound))
        bound = f"broken {tripped}, healthy sound"
        yield Quantity(pair.recipe.id, pair.dataset, f"check {name}", bound, tuple(figures))
    yield _last_validation(pair)


def _of_symptom(pair: Pair, symptom: Symptom, *, in_healthy: bool) -> Quantity:
    figures = []
    for seed in pair.seeds():
        for run in RUNS:
            result = judge_symptom(pair.first(seed, run).records, symptom)
            expected = in_healthy or run == "broken"
            right = result.value is not None and result.present == expected
            figures.append(Figure(seed, run, result.value, right))
    bounds = [f"> {symptom.above:g}"] if symptom.above is not None else []
    bounds += [f"< {symptom.below:g}"] if symptom.below is not None else []
    name = f"{'observation: ' if in_healthy else ''}{symptom.reduce} {symptom.signal}"
    return Quantity(pair.recipe.id, pair.dataset, name, " ".join(bounds), tuple(figures))


def last_validation(outcome: Outcome) -> tuple[str, float | None]:
    """Return the last validation figure of a run, and its name: an accuracy, or a loss where there is none."""
    for signal in ("val_accuracy", "val_loss"):
        values = signal_values(outcome.records, signal)
        if values:
            return signal, values[-1][1]
    return "val_loss", None


def _last_validation(pair: Pair) -> Quantity:
    found = {(seed, run): last_validation(pair.first(seed, run)) for seed in pair.seeds() for run in RUNS}
    name = next(iter(found.values()))[0]
    figures = (Figure(seed, run, value, value is not None) for (seed, run), (_, value) in found.items())
    return Quantity(pair.recipe.id, pair.dataset, f"last {name}", "", tuple(figures))


def _section(pairs: Sequence[Pair], seeds: int, notes: tuple[str, ...]) -> Section:
    rows: list[Row] = []
    wrong: list[str] = []
    amiss: set[tuple[str, str, int, Run]] = set()
    for pair in pairs:
        repeats = f"{pair.repeated()} of {len(pair.runs)}"
        for quantity in quantities(pair):
            off = [figure for figure in quantity.figures if not figure.right]
            amiss |= {(pair.recipe.id, pair.dataset, figure.seed, figure.run) for figure in off}
            named = (quantity.recipe, quantity.dataset, quantity.name, quantity.bound)
            cells = (*named, quantity.span("broken"), quantity.span("healthy"), repeats, str(len(off)))
            rows.append(Row(cells, agrees=not off and pair.repeated() == len(pair.runs)))
            wrong += quantity.wrong()
        wrong += _not_repeated(pair)
    runs = sum(len(pair.runs) for pair in pairs)
    repeated = sum(pair.repeated() for pair in pairs)
    columns = ("recipe", "data", "quantity", "symptom if", "broken", "healthy", "repeats", "wrong")
    return Section(
        title="Seeds",
        says=f"Every recipe, broken and healthy, on {seeds} seeds and each data set of its shape that was there. A"
        " range is that of all seeds; *repeats* counts the runs whose log and checkpoint had the same bytes in a"
        " second process, *wrong* those that are not as the recipe declares.",
        tables=(Table(columns, tuple(rows)),),
        figures=f"{len({pair.recipe.id for pair in pairs})} recipes, {seeds} seeds, {len(pairs)} pairs of recipe and"
        f" data: {runs - len(amiss)} of {runs} runs are as declared, {repeated} of {runs} repeat to the byte.",
        disagreements=tuple(dict.fromkeys(wrong)),
        notes=notes,
    )


def _not_repeated(pair: Pair) -> Iterator[str]:
    for (seed, run), (first, again) in pair.runs.items():
        where = f"{pair.recipe.id} on {pair.dataset}, seed {seed}, {run} run"
        if first.problem:
            yield f"{where}: {first.problem}"
        elif not first.repeats(again):
            yield f"{where}: it does not repeat to the byte"
