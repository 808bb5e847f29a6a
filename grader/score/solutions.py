"""What the instructor's half knows of a recipe: `measured.toml`."""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from grader.toml_file import read_table
from harness.checks import check_names, load_check
from harness.errors import UserError
from harness.recipe import ROOT

SOLUTIONS = ROOT / "solutions"
MEASURED = "measured.toml"


class StrictModel(BaseModel):
    """A frozen record of a file of `solutions/`: no unknown keys, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
    outcomes: Annotated[dict[str, str], BeforeValidator(_pairs)] = {}
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
    """Return those of the tripped checks whose outcome shows the fault itself: a right fix makes them sound."""
    return {
        name: outcome
        for name, outcome in trips_of(recipe_id, solutions).items()
        if load_check(name).outcome(outcome).mechanism
    }


@cache
def _measured(recipe_id: str, solutions: Path) -> _Measured:
    return read_toml(solutions / recipe_id / MEASURED, _Measured)


_Record = TypeVar("_Record", bound=StrictModel)


def read_toml(path: Path, model: type[_Record]) -> _Record:
    """Return a TOML file as a record. Raises `UserError` that names the file and every key that is wrong."""
    try:
        return model.model_validate(read_table(path))
    except FileNotFoundError:
        raise UserError(f"There is no {path}: every recipe has one in its folder of solutions.") from None
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{path} cannot be used: {problems}.") from None
