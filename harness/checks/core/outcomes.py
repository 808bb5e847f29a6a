"""Load the measured outcomes of checks on each recipe from `solutions/<id>/measured.toml`.

`grader selfcheck` writes these files. A student's kit does not contain them, so there each function raises `UserError`.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from harness.checks.core.library import every_check, load_check
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.cases import Case
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import SOLUTIONS, Recipe, Symptom

MEASURED = "measured.toml"
SOUND = "sound.toml"


def _pairs(words: Any) -> Any:
    """Return a list of strings "check outcome" as a dict. Raises `ValueError` for anything else."""
    if isinstance(words, dict):  # already a dict, not read from a file
        return words
    if not isinstance(words, list) or not all(isinstance(word, str) and word.count(" ") == 1 for word in words):
        raise ValueError('it must be a list of strings "check outcome"')
    return dict(word.split(" ") for word in words)


class _MeasuredFile(StrictModel):
    """The content of a `measured.toml`: outcomes of checks on a recipe's broken experiment, if all seeds agree on them.

    `trips` contains the outcomes of checks that find something wrong here, but nothing wrong in the healthy experiment;
    `outcomes` contains all other outcomes. `grader selfcheck` measures both.
    """

    format_version: Literal[1]
    outcomes: Annotated[dict[str, str], BeforeValidator(_pairs)] = Field(default_factory=dict)
    trips: dict[str, str]

    @model_validator(mode="after")
    def _names_outcomes(self) -> "_MeasuredFile":
        for name, outcome in (*self.outcomes.items(), *self.trips.items()):
            known = load_check(name).every_outcome if name in every_check() else ()
            if outcome not in {one.id for one in known}:
                raise ValueError(f"there is no check {name} with the outcome {outcome}")
        return self


class _SoundFile(StrictModel):
    """The content of `sound.toml`: for the name of each healthy experiment and each decoy, the outcomes of checks."""

    format_version: Literal[1]
    outcomes: dict[str, Annotated[dict[str, str], BeforeValidator(_pairs)]]


def trips_of(recipe: Recipe | str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcome of each check that finds the break of a recipe; the recipe may be given by its id.

    Raises `UserError` if there is no `measured.toml`.
    """
    return dict(_load_measured(recipe, solutions).trips)


def outcomes_of(recipe: Recipe | str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcomes of checks on the recipe's broken experiment, if they are the same for all seeds."""
    measured = _load_measured(recipe, solutions)
    return {**measured.outcomes, **measured.trips}


def outcomes_of_healthy(experiment: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcomes of checks on a healthy experiment, if they are the same for all seeds."""
    return dict(_of_sound(solutions).get(experiment, {}))


def mechanisms_of(recipe: Recipe | str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return those outcomes of `trips_of` that show the fault itself; they disappear after a correct fix."""
    return {
        name: outcome
        for name, outcome in trips_of(recipe, solutions).items()
        if load_check(name).outcome(outcome).mechanism
    }


def _load_measured(recipe: Recipe | str, solutions: Path) -> _MeasuredFile:
    if isinstance(recipe, Case) and recipe.is_healthy:
        return _MeasuredFile(format_version=1, outcomes=_of_sound(solutions).get(recipe.sound, {}), trips={})
    name = recipe if isinstance(recipe, str) else "+".join(recipe.causes)
    causes = name.split("+")  # the self-check joins the names of two breaks with a plus
    if len(causes) > 1:
        return _together([_of_recipe(cause, solutions) for cause in causes])
    return _of_recipe(causes[0], solutions)


@cache
def _of_recipe(recipe_id: str, solutions: Path) -> _MeasuredFile:
    return read_record(solutions / recipe_id / MEASURED, _MeasuredFile)


@cache
def _of_sound(solutions: Path) -> dict[str, dict[str, str]]:
    return read_record(solutions / SOUND, _SoundFile).outcomes


def _together(parts: Sequence[_MeasuredFile]) -> _MeasuredFile:
    """Return the outcomes for several breaks at once: the trips of each break, and other outcomes that all share."""
    trips = {name: outcome for part in parts for name, outcome in part.trips.items()}
    alike = [set(part.outcomes.items()) for part in parts]
    outcomes = {name: outcome for name, outcome in set.intersection(*alike) if name not in trips}
    return _MeasuredFile(format_version=1, outcomes=outcomes, trips=trips)


def rival_outcome(rival: str, check: str, found: str) -> str:
    """Return the outcome of a check for a rival cause if this outcome contradicts the found one; "" if it does not.

    A rival is another cause that could explain the run. Two different outcomes of the kind "sound" do not contradict
    each other, because they may come from different experiments. An outcome of the kind "unjudged" contradicts nothing.
    Raises `UserError` for a recipe that was never measured.
    """
    theirs = outcomes_of(rival).get(check, found)
    pair = [load_check(check).outcome(one) for one in (found, theirs)]
    excluded = theirs != found and all(one.judged for one in pair) and not all(one.sound for one in pair)
    return theirs if excluded else ""


def suggests(recipe: Recipe, rival: str) -> bool:
    """Return whether a run of this recipe also suggests the cause `rival`; for a healthy recipe, return True.

    A run suggests a rival if the recipe and the rival belong to the same area, if a check reports the same fault for
    both, or if both have a similar symptom. Raises `UserError` for a recipe that is unknown or was never measured.
    """
    return recipe.is_healthy or any(_look_alike(cause, rival) for cause in recipe.causes)


@cache
def _look_alike(one: str, two: str) -> bool:
    first, second = load_recipe(one), load_recipe(two)
    if first.area == second.area or trips_of(one).items() & trips_of(two).items():
        return True
    return any(_alike(symptom, other) for symptom in first.symptoms for other in second.symptoms)


def _alike(one: Symptom, two: Symptom) -> bool:
    """Return whether two symptoms limit the same value of a signal from the same side, in overlapping steps."""
    sides = [(item.signal, item.reduce, item.above is None, item.below is None) for item in (one, two)]
    (start, end), (other_start, other_end) = (item.steps or (0, math.inf) for item in (one, two))
    return sides[0] == sides[1] and start < other_end and other_start < end


def check_of_value(signal: str, step: int | None) -> str:
    """Return the check that judges a value in a log, or "". Only the loss at step 0 has such a check, `first_loss`."""
    return "first_loss" if (signal, step) == ("loss", 0) else ""
