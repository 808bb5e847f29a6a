"""What the instructor's half knows of a recipe: `measured.toml`."""

from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from grader.toml_file import read_table
from harness.errors import UserError
from harness.recipe import ROOT

SOLUTIONS = ROOT / "solutions"


class StrictModel(BaseModel):
    """A frozen record of a file of `solutions/`: no unknown keys, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Measured(StrictModel):
    """What `grader selfcheck` measured of a recipe's broken experiment."""

    format_version: Literal[1] = 1
    outcomes: dict[str, str] = {}
    trips: dict[str, str] = {}


def trips_of(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the checks that are not sound on the recipe's broken experiment, each with its outcome."""
    return dict(_measured(recipe_id, solutions).trips)


def outcomes_of(recipe_id: str, solutions: Path = SOLUTIONS) -> dict[str, str]:
    """Return the outcome of every check on the recipe's broken experiment that is the same for all seeds."""
    measured = _measured(recipe_id, solutions)
    return {**measured.outcomes, **measured.trips}


@cache
def _measured(recipe_id: str, solutions: Path) -> _Measured:
    path = solutions / recipe_id / "measured.toml"
    return read_toml(path, _Measured) if path.is_file() else _Measured()


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
