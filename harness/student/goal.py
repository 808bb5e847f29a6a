"""Judge on the student's machine whether an experiment is fixed, by the criteria of the grader.

The log must no longer show the symptom, the validation metrics must be healthy, and every function must behave as in a
healthy program (`harness.behaviour`). If a function that was not broken behaves differently, no check may find a fault.
The grader also evaluates the weights on data that students never get, and compares the bytes of the runs.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Protocol

from pydantic import Field

from harness.behaviour.compare import Behaviour
from harness.behaviour.settings import examined_settings
from harness.behaviour.sound import Comparison, SoundPrograms, compare, read_sound_programs
from harness.checks import load_check, mechanism_checks, run_checks
from harness.data import CLASS_NAMES
from harness.formats.toml_file import StrictModel
from harness.recipes.cases import Case
from harness.recipes.recipe import BEHAVIOUR, EXERCISES, Goal, KitRecipe, Recipe, Symptom
from harness.run.metrics_log import Record, batch_records, epoch_records
from harness.run.settings import RunSettings
from harness.run.symptoms import judge_symptom, signal_values
from harness.student.verdict_children import VerdictChildren
from harness.submission.log_values import load_causes

# On 257 validation images, random guesses reach an accuracy of up to this factor times 1 / classes.
_LIKE_A_GUESS = 1.5
_OF_LOSS = frozenset({"loss", "val_loss"})
AS_HEALTHY = "every function behaves as in a healthy program"
UNLIKE_HEALTHY = "the part that was broken still differs from a healthy program"
LOG, CHECKS = "log", "checks"  # the two criteria of a hidden exercise


class GoalItem(StrictModel):
    """One criterion of a fixed run: its description, whether this run meets it, and the measured value or finding.

    checks: for a hidden exercise, the names of the checks that differ. Only an option of `verify` shows these names.
    """

    says: str
    reached: bool
    found: str
    by_check: bool = False
    checks: Annotated[tuple[str, ...], Field(strict=False)] = ()

    @property
    def short(self) -> str:
        """The result for this criterion in a few words."""
        if self.by_check:
            return f"{self.says} finds {self.found.partition(':')[0]}"
        if self.says in (LOG, CHECKS):
            return f"{self.says}: {self.found}"
        subject, verb, _ = self.says.partition(" is ")
        return f"{subject}: {self.found}" if verb else self.found  # such as "validation accuracy: 60.0%"


# Judges report each criterion as soon as it is known.
SayItem = Callable[[GoalItem], None]


def describe_goal(recipe: Recipe, dataset: str) -> list[str]:
    """Return the criteria of a fixed run in words. They name no check, because the student must find the right checks.

    For a hidden exercise, use its own sentences instead (`harness.student.summary`).
    """
    lines = ["the log shows no symptom any more"] if symptoms_of(recipe, dataset) else []
    if recipe.goal is not None and dataset == recipe.dataset:
        lines += [_describe_bound(*item) for item in _figures(recipe.goal)]
    compared = dataset == recipe.dataset and (EXERCISES / recipe.id / BEHAVIOUR).is_file()
    return [*lines, AS_HEALTHY if compared else "the checks that found the fault find nothing wrong any more"]


class Examination(Protocol):
    """Measures an experiment on demand, and knows the correct programs of its exercise."""

    @property
    def programs(self) -> SoundPrograms | None:
        """The correct programs for the comparison, or None if there are no such programs."""

    def behaviour(self) -> Behaviour:
        """Return the behaviour of the experiment."""

    def outcomes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return {check: outcome} for these checks. Checks that cannot run are left out."""


@dataclass(frozen=True)
class OnThisMachine:
    """Measures an experiment in processes on this machine. Raises `UserError` if the experiment cannot be measured.

    children: the processes that measure.
    """

    recipe: Recipe
    settings: RunSettings
    source: str
    children: VerdictChildren = field(default_factory=VerdictChildren)

    @cached_property
    def programs(self) -> SoundPrograms | None:
        """The correct programs of the exercise, or None if the run uses another data set than the recipe."""
        return programs_of(self.recipe) if self.settings.dataset == self.recipe.dataset else None

    def begin(self) -> None:
        """Measure the behaviour in the background, if it is compared with correct programs."""
        if self.programs is not None:
            self.children.begin_measurement(self.source, self._examined_settings)

    def behaviour(self) -> Behaviour:
        """Measure and return the behaviour of each function."""
        return self.children.behaviour(self.source, self._examined_settings)

    @property
    def _examined_settings(self) -> RunSettings:
        return examined_settings(self.recipe, self.recipe.broken_source())

    def outcomes(self, names: Sequence[str]) -> Mapping[str, str]:
        """Run the named checks and return {check: outcome}."""
        # A student who prints values in `train_step` wants to see the values of the run, not of each check.
        found = run_checks(self.source, self.settings, names, bar=True, quiet=True)
        return {name: finding.outcome for name, finding in found.items()}


def judge(
    recipe: Recipe,
    settings: RunSettings,
    records: Sequence[Record],
    examined: Examination,
    say: SayItem = lambda item: None,
) -> list[GoalItem]:
    """Judge a run by its log and, if the log looks right, also by its functions and checks. Return the judged criteria.

    If the student changed the epochs or the batch size, the log does not count, because even a healthy run may then
    show a symptom. `say` gets each criterion as soon as it is judged: reading the log takes no time, but measuring
    functions and checks takes up to two minutes. Raises as the methods of `examined` do.

    A hidden exercise has only the criteria `LOG` and `CHECKS`. Separate criteria would reveal what is wrong, or that
    nothing is.
    """
    every = mechanism_checks(recipe.broken_source())
    told = _HiddenCriteriaPrinter(say, examined, every) if isinstance(recipe, Case) else _CriteriaPrinter(say)
    certain, uncertain = _judge_log(recipe, settings, records)
    told.add(certain)
    if not all(item.reached for item in certain):
        told.add(uncertain)
        return told.end_of_log()
    told.add([item for item in uncertain if item.reached])
    missed = [item for item in uncertain if not item.reached]
    if not missed:
        told.end_of_log()
    programs = examined.programs
    comparison = None if programs is None else compare(examined.behaviour(), programs)
    other = comparison is not None and (comparison.other_loss or comparison.other_network)
    if missed and not (comparison is not None and other and not comparison.open_causes):
        told.add(missed)
        return told.end_of_log()
    told.end_of_log()
    told.judge_functions(_by_functions(comparison, examined, every, recipe.goal.checks if recipe.goal else ()))
    return told.found


def _judge_log(
    recipe: Recipe, settings: RunSettings, records: Sequence[Record]
) -> tuple[list[GoalItem], list[GoalItem]]:
    """Return the criteria about the log: first the certain ones, then others that a correct fix may miss.

    A correct fix with another loss or network may miss a criterion about the loss.
    """
    goal = recipe.goal
    certain: list[GoalItem] = []
    uncertain: list[GoalItem] = []
    if settings.epochs is None and settings.batch_size is None:
        if not all(math.isfinite(record["loss"]) for record in batch_records(records)[-1:]):
            return [GoalItem(says="the loss is finite", reached=False, found="the last loss is NaN or infinite")], []
        for symptom in symptoms_of(recipe, settings.dataset):
            (uncertain if symptom.signal in _OF_LOSS else certain).append(_gone(symptom, records))
        if goal is not None and settings.dataset == recipe.dataset:
            chance, last = 1 / len(CLASS_NAMES[recipe.dataset] or (0,)), epoch_records(records)[-1]
            uncertain += [_judge_bound(item, last, chance) for item in _figures(goal)]
    return certain, uncertain


class _CriteriaPrinter:
    """The criteria that are judged so far. `say` gets each one at once."""

    def __init__(self, say: SayItem) -> None:
        self.found: list[GoalItem] = []
        self._say = say

    def add(self, items: Iterable[GoalItem]) -> None:
        """Add criteria."""
        for item in items:
            self.found.append(item)
            self._say(item)

    def end_of_log(self) -> list[GoalItem]:
        """Return all criteria, when no further criterion about the log follows."""
        return self.found

    def judge_functions(self, items: Iterable[GoalItem]) -> None:
        """Add the criteria about functions and checks."""
        self.add(items)


class _HiddenCriteriaPrinter(_CriteriaPrinter):
    """The criteria of a hidden exercise: all criteria about the log become one, and all others become one."""

    def __init__(self, say: SayItem, examined: Examination, every: Sequence[str]) -> None:
        super().__init__(say)
        self._log: list[GoalItem] = []
        self._examined, self._every = examined, every

    def add(self, items: Iterable[GoalItem]) -> None:
        """Collect criteria about the log."""
        self._log += items

    def end_of_log(self) -> list[GoalItem]:
        """Add the criterion `LOG`, unless it was added before or the log does not count."""
        if self._log and not self.found:
            healthy = all(item.reached for item in self._log)
            found = "healthy" if healthy else "differs from a healthy run"
            super().add([GoalItem(says=LOG, reached=healthy, found=found)])
        return self.found

    def judge_functions(self, items: Iterable[GoalItem]) -> None:
        """Add the criterion `CHECKS`. If something is wrong, run all checks and count those that differ.

        All checks also run if there is no other criterion, as for an exercise in which nothing is broken. Otherwise the
        missing criterion would reveal that nothing is.
        """
        made = list(items)
        if made and all(item.reached for item in made):
            super().add([GoalItem(says=CHECKS, reached=True, found="healthy")])
            return
        outcomes = self._examined.outcomes(self._every)
        differ = tuple(name for name, outcome in outcomes.items() if not load_check(name).outcome(outcome).sound)
        if not made and not differ:
            super().add([GoalItem(says=CHECKS, reached=True, found="healthy")])
            return
        count = f"{len(differ)} of {len(outcomes)} {'differs' if len(differ) == 1 else 'differ'}"
        if not differ:
            count = f"all {len(outcomes)} agree with a healthy run, but a function behaves differently"
        super().add([GoalItem(says=CHECKS, reached=False, found=count, checks=differ)])


def _by_functions(
    comparison: Comparison | None, examined: Examination, every: Sequence[str], names: Sequence[str]
) -> Iterator[GoalItem]:
    """Yield the criteria about the functions of an experiment and, if needed, about the checks.

    every: the checks that see faults themselves. names: those that find the fault of this exercise.
    """
    if comparison is not None and (
        comparison.open_causes or comparison.lost or comparison.newly_wrong or not comparison.other
    ):
        # If all functions behave alike, the checks have the same outcomes too, so they need not run.
        yield _as_healthy(comparison)
        return
    if comparison is not None:
        yield _as_healthy(comparison)
        names = every
    if names:
        yield from (_sound(name, outcome) for name, outcome in examined.outcomes(names).items())


def programs_of(recipe: Recipe) -> SoundPrograms | None:
    """Return the correct programs of an exercise, or None. A case with several causes gets the programs of each."""
    ids = recipe.parts if isinstance(recipe, Case) else (recipe.id,)
    found = [read_sound_programs(EXERCISES / id / BEHAVIOUR) for id in ids]
    if not found or None in found or recipe.course is not None:
        return None
    programs = [one for one in found if one is not None]
    breaks = tuple(item for one in programs for item in one.breaks)
    sound = tuple(item for one in programs for item in one.sound)
    return programs[0].model_copy(update={"breaks": breaks, "sound": sound})


def _as_healthy(comparison: Comparison) -> GoalItem:
    if comparison.open_causes:
        return GoalItem(says=AS_HEALTHY, reached=False, found=UNLIKE_HEALTHY)
    if comparison.newly_wrong:
        found = f"your edit breaks a part that was right before: {comparison.newly_wrong[0].aspect}"
        return GoalItem(says=AS_HEALTHY, reached=False, found=found)
    if comparison.lost:
        return GoalItem(
            says=AS_HEALTHY,
            reached=False,
            found=f"your edit switches off a part of the training: {', '.join(comparison.lost)}",
        )
    found = "yes" if comparison.is_right else "the broken part is fixed, but another part differs"
    return GoalItem(says=AS_HEALTHY, reached=True, found=found)


def symptoms_of(recipe: Recipe, dataset: str) -> tuple[Symptom, ...]:
    """Return the symptoms of a recipe.

    A student's kit stores symptoms by cause, and no symptoms for the cases of a course.
    """
    if isinstance(recipe, KitRecipe):
        return () if recipe.course is not None else load_causes()[recipe.id].symptoms(dataset)
    return recipe.on(dataset).symptoms


def _gone(symptom: Symptom, records: Sequence[Record]) -> GoalItem:
    result = judge_symptom(records, symptom)
    which = f"{symptom.reduce} " if len(signal_values(records, symptom.signal)) > 1 else ""
    found = "not in the log" if result.value is None else f"{which}{symptom.signal} is {result.value:.4g}"
    says = f"{'a' if result.present else 'no'} symptom in {symptom.signal}"
    return GoalItem(says=says, reached=not result.present, found=found)


def _figures(goal: Goal) -> Iterator[tuple[str, float]]:
    """Yield (signal, bound) for each validation metric that must reach a bound."""
    bounds = {"val_accuracy": goal.least_accuracy, "val_loss": goal.greatest_loss}
    yield from ((signal, bound) for signal, bound in bounds.items() if bound is not None)


def _describe_bound(signal: str, bound: float) -> str:
    if signal == "val_accuracy":
        return f"validation accuracy is at least {bound:.0%}, as in a healthy run"
    return f"validation loss is at most {bound:.4g}, as in a healthy run"


def _judge_bound(wanted: tuple[str, float], last: Record, chance: float) -> GoalItem:
    signal, bound = wanted
    # `evaluate` may report the accuracy on a subset of the data, so the harness's own evaluation is also judged.
    values = [last[name] for name in (signal, f"{signal}_eval_mode") if last.get(name) is not None]
    value = None if not values else min(values) if signal == "val_accuracy" else max(values)
    if value is None:
        return GoalItem(says=_describe_bound(*wanted), reached=False, found="the log does not contain it")
    if signal == "val_loss":
        return GoalItem(says=_describe_bound(*wanted), reached=value <= bound, found=f"{value:.4g}")
    guess = ", about as good as random guesses" if value < min(bound, _LIKE_A_GUESS * chance) else ""
    return GoalItem(says=_describe_bound(*wanted), reached=value >= bound, found=f"{value:.1%}{guess}")


def _sound(name: str, outcome: str) -> GoalItem:
    found = load_check(name).outcome(outcome)
    says = f"check {name.replace('_', '-')}"
    said = (
        f"{outcome}: {found.reading}"
        if not found.sound
        else outcome
        if found.judged
        else f"{outcome}, nothing to judge"
    )
    return GoalItem(says=says, reached=found.sound, found=said, by_check=True)
