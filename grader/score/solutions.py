"""Read `solutions/<id>/measured.toml`: what every check finds on a recipe's broken experiment."""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from harness.checks import check_names, load_check
from harness.recipe import ROOT
from harness.toml_file import StrictModel, read_record

SOLUTIONS = ROOT / "solutions"
MEASURED = "measured.toml"


def _pairs(words: Any) -> Any:
    """Turn a list of "check outcome" into a table. Raises `ValueError` for anything else."""
    if not isinstance(words, list) or not all(
        isinstance(word, str) and word.count(" ") == 1 for word in words
    ):
        raise ValueError('it is a list of "check outcome"')
    return dict(word.split(" ") for word in words)


class _Measured(StrictModel):
    """What `grader selfcheck` measured of a recipe's broken experiment: the outcomes on which all seeds agree.

    `trips` holds those that are unsound, and sound on the healthy experiment; `outcomes` the others.
    """

    format_version: Literal[1]
    outcomes: Annotated[dict[str, str], BeforeValidator(_pairs)] = Field(default_factory=dict)
    trips: dict[str, str]

    @model_validator(mode="after")
    def _names_outcomes(self) -> "_Measured":
        for name, outcome in (*self.outcomes.items(), *self.trips.items()):
            if name not in check_names() or outcome not in {one.id for one in load_check(name).outcomes}:
                raise ValueError(f"there is no check {name} with the outcome {outcome}")
        return self


def trips_of(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcome of each check that a recipe's break trips. Raises `UserError` without `measured.toml`."""
    return dict(_measured(recipe_id, solutions).trips)


def outcomes_of(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcome of every check on the recipe's broken experiment that is the same for all seeds."""
    measured = _measured(recipe_id, solutions)
    return {**measured.outcomes, **measured.trips}


def mechanisms_of(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the tripped checks whose outcome shows the fault itself: a right fix makes them sound."""
    return {
        name: outcome
        for name, outcome in trips_of(recipe_id, solutions).items()
        if load_check(name).outcome(outcome).mechanism
    }


@cache
def _measured(recipe_id: str, solutions: Path) -> _Measured:
    return read_record(solutions / recipe_id / MEASURED, _Measured)
