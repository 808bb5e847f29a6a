"""What the instructor's half knows of a recipe: `variants.toml` and `measured.toml`."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grader.toml_file import read_table
from harness.checks import check_names, load_check
from harness.errors import UserError
from harness.recipe import ROOT, Edit, apply_edits

SOLUTIONS = ROOT / "solutions"
MEASURED = "measured.toml"

Verdict = Literal["full", "alternative", "masking", "overreach", "wrong"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# Wherever a tuple is declared with strict=False, a list of TOML becomes one; nothing else is converted.


class StrictModel(BaseModel):
    """A frozen record of a file of `solutions/`: no unknown keys, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Variant(StrictModel):
    """An edit of the *broken* experiment, and the verdict that the grader must give it.

    `full` is the reference fix and its equals, `alternative` is right but not minimal, `masking` removes the
    symptom and leaves the cause, `overreach` also rewires what was not broken, `wrong` mends nothing. One that is
    `held_back` was not looked at while the rules were made: it tests them.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    verdict: Verdict
    says: Annotated[str, Field(min_length=1)]
    held_back: bool = False
    edits: Annotated[tuple[Edit, ...], Field(alias="edit", min_length=1, strict=False)]

    def source(self, broken_source: str) -> str:
        """Return the broken experiment with this variant's edits in it.

        Raises `ValueError` where a `find` does not occur exactly once.
        """
        return apply_edits(broken_source, self.edits, where=f"variant {self.id}")


class _Variants(StrictModel):
    format_version: Literal[1]
    variants: Annotated[tuple[Variant, ...], Field(alias="variant", min_length=1, strict=False)]

    @model_validator(mode="after")
    def _begin_with_the_reference(self) -> "_Variants":
        ids = [variant.id for variant in self.variants]
        if len(set(ids)) < len(ids):
            raise ValueError("two variants have the same id")
        if ids[0] != "reference" or self.variants[0].verdict != "full":
            raise ValueError("the first variant must be `reference`, with the verdict `full`")
        return self


def load_variants(recipe_id: str, solutions: Path = SOLUTIONS) -> tuple[Variant, ...]:
    """Return a recipe's variants, the reference fix first. Raises `UserError` if the file is missing or wrong."""
    return read_toml(solutions / recipe_id / "variants.toml", _Variants).variants


class _Measured(StrictModel):
    """What `grader selfcheck` measured of a recipe's broken experiment: the outcomes on which all seeds agree.

    `trips` holds those that are unsound, and sound on the healthy experiment; `outcomes` the others.
    """

    format_version: Literal[1]
    outcomes: dict[str, str] = Field(default_factory=dict)
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
