"""Cases: experiments with zero to four breaks and a name that does not reveal the breaks.

`solutions/cases.toml` lists breaks that can be applied to the same experiment, and decoys: healthy experiments that
look broken. The command `grader selfcheck` verifies all of them.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from harness.errors import UserError, suggestion
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import (
    EXERCISES,
    HEALTHY,
    LEVELS,
    SOLUTIONS,
    Edit,
    Recipe,
    Symptom,
    apply_edits,
    edit_of,
    experiment_source,
    load_recipes,
    read_recipe,
)

CASES = "cases.toml"
MYSTERY = "mystery"  # the prefix of the names of mysteries (`harness.recipes.mysteries`)
CASE = "case"  # the prefix of the names of cases in the queue
TITLE = "What is wrong with this run, if anything?"
_TwoIds = Annotated[tuple[str, str], Field(strict=False)]
_SeveralIds = Annotated[tuple[str, ...], Field(min_length=3, max_length=4, strict=False)]
Edits = Annotated[tuple[Annotated[Edit, BeforeValidator(edit_of)], ...], Field(strict=False)]
# The command `grader selfcheck` runs every check with these seeds on broken, healthy and decoy experiments.
SEEDS = (42, 7, 1001)
_HEALTHY_HINTS = (
    "`harness triage` runs the checks. Which of them find a fault, and what would the log show if they were right?",
    "Read the experiment from load_data to evaluate. For each line that surprises you, write down what it would break.",
    "A run may look broken and be healthy. If the line that you suspect were wrong, how would the log differ?",
)


class Twins(StrictModel):
    """Two exercises whose logs look similar at first. `alike` describes what both logs show."""

    exercises: _TwoIds
    alike: str


class Decoy(StrictModel):
    """A healthy experiment, sometimes with edits, that looks broken.

    `looks` lists what its log shows, and `why` says why it is healthy.
    """

    id: str
    experiment: str
    dataset: str
    edits: Edits = ()
    looks: Symptom
    why: str

    def sound(self) -> "Sound":
        """Return the decoy as a healthy experiment."""
        return Sound(self.id, self.experiment, self.dataset, self.edits, self.why)

    def source(self) -> str:
        """Return the source of the experiment. Raises `ValueError` if an edit cannot be applied to it."""
        return self.sound().source()


class Cases(StrictModel):
    """The content of `cases.toml`.

    `together` lists pairs of exercises whose breaks can be applied to the same experiment, and `several` lists three or
    four exercises whose breaks can.
    """

    format_version: Literal[1]
    twins: Annotated[tuple[Twins, ...], Field(strict=False)]
    decoy: Annotated[tuple[Decoy, ...], Field(strict=False)]
    together: Annotated[tuple[_TwoIds, ...], Field(strict=False)]
    several: Annotated[tuple[_SeveralIds, ...], Field(strict=False)] = ()


def load_cases(solutions: Path = SOLUTIONS) -> Cases:
    """Load `cases.toml`. Raises `UserError` if it is invalid."""
    return read_record(solutions / CASES, Cases)


class Case(Recipe):
    """An experiment with the breaks of zero to four recipes (`parts`).

    `sound` is the name of the healthy experiment or of the decoy. `decoy` contains the edits that make a decoy look
    broken.
    """

    area: Any = None
    hints: tuple[str, str, str]
    breaks: tuple[Edit, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    observations: tuple[()] = ()
    parts: tuple[str, ...]
    sound: str
    decoy: tuple[Edit, ...] = ()

    @property
    def causes(self) -> tuple[str, ...]:
        """The ids of the recipes whose breaks the case contains, or `healthy` if it contains none."""
        return self.parts or (HEALTHY,)

    @property
    def measured_seed(self) -> int:
        """The seed of its first recipe, or its own. A hidden exercise draws another seed for its runs."""
        return read_recipe(self.parts[0]).seed if self.parts else self.seed

    @property
    def is_case(self) -> bool:
        """Always True."""
        return True

    @property
    def content(self) -> tuple[str, ...]:
        """The causes of the case and the name of its healthy experiment.

        If two hidden exercises have equal content, they differ only in their seeds.
        """
        return (*self.causes, self.sound)

    @property
    def table(self) -> "CaseTable":
        """The table that describes this case in a course file."""
        decoy = None if self.sound == self.experiment else self.sound
        return CaseTable(id=self.id, experiment=self.experiment, breaks=self.parts, decoy=decoy)

    def healthy_source(self) -> str:
        """Return the source of the healthy experiment."""
        return apply_edits(experiment_source(self.experiment), self.decoy, where=self.id)


def case_of(id: str, recipes: Sequence[Recipe], *, seed: int | None = None) -> Case:
    """Return a case with the breaks of one to four recipes.

    Raises `ValueError` if their breaks cannot be applied to the same experiment.
    """
    one, *others = recipes
    if any((one.experiment, one.dataset) != (two.experiment, two.dataset) for two in others):
        raise ValueError(f"{' and '.join(recipe.id for recipe in recipes)} break different experiments")
    goals = [recipe.goal for recipe in recipes if recipe.goal is not None]
    goal = None
    if len(goals) == len(recipes):
        checks = dict.fromkeys(name for goal in goals for name in goal.checks)
        level = min(max(goal.level for goal in goals) + len(others), LEVELS)
        goal = goals[0].model_copy(update={"checks": tuple(checks), "level": level})
    first, second, third = (_hint([one.hints[level].replace(one.id, id) for one in recipes]) for level in range(3))
    case = Case(
        id=id,
        goal=goal,
        format_version=2,
        title=TITLE,
        experiment=one.experiment,
        dataset=one.dataset,
        seed=one.seed if seed is None else seed,
        cause="; ".join(recipe.cause for recipe in recipes),
        hints=(first, second, third),
        breaks=tuple(edit for recipe in recipes for edit in recipe.breaks),
        symptoms=tuple(symptom for recipe in recipes for symptom in recipe.symptoms),
        parts=tuple(recipe.id for recipe in recipes),
        sound=one.experiment,
    )  # fmt: skip
    case.broken_source()
    return case


class CaseTable(StrictModel):
    """A table `[[assignment.case]]` of a course file, which describes an experiment with breaks, or a decoy.

    pool: the name of a pool, or "". Each student gets one of the cases that have the same pool in the same assignment.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
    experiment: str
    breaks: Annotated[tuple[str, ...], Field(max_length=4, strict=False)] = ()
    decoy: str | None = None
    pool: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")] | None = None

    def case(self, course: str | None = None, **options: Any) -> Case:
        """Return the case with the options of a course: `personal_seeds`, `triage` and `pool`.

        Raises `UserError` if the table contains an unknown name, or if its breaks do not fit its experiment.
        """
        hidden = self.id.startswith(MYSTERY) or re.fullmatch(rf"{CASE}-[0-9]+", self.id)
        if (EXERCISES / self.id).exists() or self.id in (HEALTHY, "none") or hidden:
            raise UserError(f"the id {self.id} reveals what is wrong, or is a reserved word: choose another id.")
        case = self._broken() if self.breaks else self._sound()
        return case.model_copy(update={"course": course, **options})

    def _broken(self) -> Case:
        recipes = [read_recipe(name) for name in self.breaks]
        if self.decoy is not None:
            raise UserError(f"a decoy has no breaks: remove decoy, or remove {' and '.join(self.breaks)}.")
        for recipe in recipes:
            if recipe.experiment != self.experiment:
                raise UserError(
                    f"{recipe.id} breaks the experiment {recipe.experiment}, not {self.experiment}: "
                    "change the break or the experiment."
                )
        try:
            return case_of(self.id, recipes)
        except ValueError as error:
            raise UserError(f"these breaks do not fit into the same experiment ({error}): remove one.") from None

    def _sound(self) -> Case:
        every = _every_sound()
        name = self.decoy or self.experiment
        known = [one.name for one in every.values() if one.experiment == self.experiment]
        if self.decoy is None:
            known = sorted({one.experiment for one in every.values()})
        if name not in every or every[name].experiment != self.experiment:
            kind = "experiment" if self.decoy is None else f"decoy of {self.experiment}"
            raise UserError(f"there is no {kind} {name!r}: {suggestion(name, known)}")
        return healthy_case(self.id, every[name], load_recipes()[0], SEEDS[0])


@cache
def _every_sound() -> "dict[str, Sound]":
    return {one.name: one for one in sound_experiments(load_cases().decoy, load_recipes()[0])}


def _hint(parts: Sequence[str]) -> str:
    """Return a hint for a case, which consists of the same hint of each recipe in it.

    If the case has several breaks, the hint says that its numbers come from runs with only one of the faults.
    """
    if len(parts) == 1:
        return parts[0]
    first, *others = parts
    alone = "the other" if len(others) == 1 else "the others"
    label = "About the other fault" if len(others) == 1 else "About another fault"
    lines = [f"About one fault (its numbers come from a run without {alone}): {first}"]
    return "\n\n".join([*lines, *(f"{label}: {part}" for part in others)])


class Sound(NamedTuple):
    """A decoy or an unchanged healthy experiment. `why` says why a decoy is healthy."""

    name: str
    experiment: str
    dataset: str
    edits: tuple[Edit, ...] = ()
    why: str = ""

    def source(self) -> str:
        """Return the source of the experiment. Raises `ValueError` if an edit cannot be applied to it."""
        return apply_edits(experiment_source(self.experiment), self.edits, where=self.name)


def sound_experiments(decoys: Sequence[Decoy], recipes: Iterable[Recipe]) -> list[Sound]:
    """Return all decoys and healthy experiments."""
    return [
        *(decoy.sound() for decoy in decoys),
        *dict.fromkeys(Sound(one.experiment, one.experiment, one.dataset) for one in recipes),
    ]


def healthy_case(name: str, drawn: Sound, recipes: Iterable[Recipe], seed: int) -> Case:
    """Return a case in which nothing is broken: a healthy experiment or a decoy."""
    # A student's edits are judged as in a broken mystery, by the validation metrics of healthy runs.
    goals = (one.goal for one in recipes if (one.experiment, one.dataset) == (drawn.experiment, drawn.dataset))
    goal = next((goal.model_copy(update={"checks": ()}) for goal in goals if goal is not None), None)
    return Case(
        goal=goal,
        id=name,
        format_version=2,
        title=TITLE,
        experiment=drawn.experiment,
        dataset=drawn.dataset,
        seed=seed,
        cause=f"nothing is wrong with this run. {drawn.why}".strip(" ."),
        hints=_HEALTHY_HINTS,
        parts=(),
        sound=drawn.name,
        decoy=drawn.edits,
    )
