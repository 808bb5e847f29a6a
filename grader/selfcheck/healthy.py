"""Part `healthy`: sound variants of the healthy experiments, which must raise no symptom and trip no check."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from grader.score.solutions import SOLUTIONS, StrictModel, mechanisms_of, read_toml
from grader.selfcheck.progress import counting
from grader.selfcheck.section import Row, Section, Table
from grader.selfcheck.seeds import FIRST_SEED, last_validation
from grader.selfcheck.trial import Outcome, Trial
from grader.selfcheck.trial_memory import TrialMemory
from grader.selfcheck.trials import run_trials
from harness.checks import load_check
from harness.recipe import Edit, Recipe, apply_edits, experiment_source
from harness.symptoms import judge_symptom

# The first of the seeds are enough: what varies here is the experiment.
MOST_SEEDS = 3


class HealthyVariant(StrictModel):
    """An edit of a healthy experiment after which it is as sound as before."""

    experiment: str
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    says: Annotated[str, Field(min_length=1)]
    edits: Annotated[tuple[Edit, ...], Field(alias="edit", min_length=1, strict=False)]

    def source(self) -> str:
        """Return the edited experiment. Raises `ValueError` where a `find` does not occur exactly once."""
        where = f"healthy variant {self.experiment} {self.id}"
        return apply_edits(experiment_source(self.experiment), self.edits, where=where)


class _HealthyVariants(StrictModel):
    format_version: Literal[1]
    variants: Annotated[tuple[HealthyVariant, ...], Field(alias="variant", min_length=1, strict=False)]

    @model_validator(mode="after")
    def _have_names_of_their_own(self) -> "_HealthyVariants":
        names = [(variant.experiment, variant.id) for variant in self.variants]
        if len(set(names)) < len(names):
            raise ValueError("two variants of one experiment have the same id")
        return self


def load_healthy(solutions: Path = SOLUTIONS) -> tuple[HealthyVariant, ...]:
    """Return the variants of `healthy.toml`. Raises `UserError` if the file is missing or wrong."""
    return read_toml(solutions / "healthy.toml", _HealthyVariants).variants


@dataclass(frozen=True)
class HealthyRuns:
    """A variant on its experiment's own data, run from a few seeds, before the recipes that break the experiment."""

    variant: HealthyVariant
    recipes: Sequence[Recipe]
    runs: dict[int, Outcome]

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each symptom that is there, and each check that is not sound."""
        for seed, outcome in self.runs.items():
            where = f"{self.variant.experiment} {self.variant.id}, seed {seed}"
            if outcome.problem:
                yield f"{where}: {outcome.problem}"
            else:
                for recipe in self.recipes:
                    yield from (f"{where}: {recipe.id}: {found}" for found in false_alarms(recipe, outcome))


def false_alarms(recipe: Recipe, outcome: Outcome) -> Iterator[str]:
    """Yield what a recipe says of a sound run that it should not say: its symptoms, and checks that are not sound."""
    for symptom in recipe.symptoms:
        result = judge_symptom(outcome.records, symptom)
        if result.present:
            yield f"{symptom.reduce} {symptom.signal} is {result.value:.6g}: {symptom.says}"
    for name in mechanisms_of(recipe.id):
        if not load_check(name).outcome(outcome.checks[name]).sound:
            yield f"check {name} finds {outcome.checks[name]}"


def healthy_section(
    recipes: Sequence[Recipe],
    *,
    seeds: int,
    jobs: int,
    cache: Path,
    memory: TrialMemory,
    solutions: Path = SOLUTIONS,
) -> Section:
    """Run every variant of these recipes' experiments, and judge it by every one of the recipes."""
    seeds = min(seeds, MOST_SEEDS)
    by_experiment: dict[str, list[Recipe]] = {}
    for recipe in recipes:
        by_experiment.setdefault(recipe.experiment, []).append(recipe.on(recipe.dataset))
    trials: dict[tuple[HealthyVariant, int], Trial] = {}
    for variant in load_healthy(solutions):
        own = by_experiment.get(variant.experiment, [])
        kinds = tuple(sorted({name for recipe in own for name in mechanisms_of(recipe.id)}))
        for seed in range(FIRST_SEED, FIRST_SEED + seeds) if own else ():
            trials[variant, seed] = Trial(variant.source(), own[0].dataset, seed, kinds)
    with counting("healthy variants") as progress:
        outcomes = run_trials(list(trials.values()), jobs=jobs, cache=cache, progress=progress, memory=memory)
    runs: dict[HealthyVariant, dict[int, Outcome]] = {}
    for (variant, seed), trial in trials.items():
        runs.setdefault(variant, {})[seed] = outcomes[trial]
    found = [HealthyRuns(variant, by_experiment[variant.experiment], own) for variant, own in runs.items()]
    return _section(found, seeds)


def _section(found: Sequence[HealthyRuns], seeds: int) -> Section:
    rows, alarms, warned = [], [], 0
    alarmed = {item.variant for item in found if any(item.problems())}
    for item in found:
        problems = list(item.problems())
        alarms += problems
        spoke = [outcome for outcome in item.runs.values() if outcome.warnings]
        warned += len(spoke)
        cells = (item.variant.experiment, item.variant.id, item.variant.says, _last(item), str(len(problems)))
        rows.append(Row((*cells, f"{len(spoke)} of {len(item.runs)}"), agrees=not problems))
    runs = sum(len(item.runs) for item in found)
    says = (
        f"Sound experiments of `solutions/healthy.toml` on {seeds} seeds: other widths, optimizers, batch sizes,"
        " schedules, clipping, accumulation. *alarms* counts the symptoms that a recipe of the experiment sees there"
        " and the checks that are not sound, of all seeds; *warned* counts the runs of which the guardrails"
        " said something."
    )
    columns = ("experiment", "variant", "what it is", "last validation", "alarms", "warned")
    figures = (
        f"{len(found)} healthy variants, {runs} runs: {len(found) - len(alarmed)} of {len(found)} raise no alarm;"
        f" the guardrails warned in {warned} of {runs} runs."
    )
    return Section("Healthy variants", says, (Table(columns, tuple(rows)),), figures, tuple(alarms))


def _last(item: HealthyRuns) -> str:
    found = [last_validation(outcome) for outcome in item.runs.values()]
    values = [value for _, value in found if value is not None]
    name = "accuracy" if found and found[0][0] == "val_accuracy" else "loss"
    return f"{name} {min(values):.4g} to {max(values):.4g}" if values else "-"
