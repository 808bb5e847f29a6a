"""Read what `solutions/` holds: what every check finds on a broken experiment, and known edits with their verdicts.

`<experiment>.edits.toml` holds edits of the *healthy* experiment that all its recipes share, `<id>/variants.toml` edits
of the *broken* experiment that are special to a recipe. Both have one table per verdict with entries
`id = [[find, replace], ...]`; both are optional.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from harness.cases import is_mystery, load_mystery
from harness.checks import check_names, load_check
from harness.recipe import SOLUTIONS, Edit, Recipe, apply_edits, edit_of
from harness.toml_file import StrictModel, read_record

MEASURED = "measured.toml"
SOUND = "sound.toml"
# full: the fix and its equals. alternative: right in another way. masking: the symptom goes, the cause stays.
# overreach: right, and changes what was sound. wrong: fixes nothing. sound: a change of a sound experiment.
Verdict = Literal["full", "alternative", "masking", "overreach", "wrong", "sound"]


def _pairs(words: Any) -> Any:
    """Turn a list of "check outcome" into a table. Raises `ValueError` for anything else."""
    if isinstance(words, dict):  # not from a file
        return words
    if not isinstance(words, list) or not all(isinstance(word, str) and word.count(" ") == 1 for word in words):
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


class _Sound(StrictModel):
    """What the checks find of each healthy experiment and decoy, by its name."""

    format_version: Literal[1]
    outcomes: dict[str, Annotated[dict[str, str], BeforeValidator(_pairs)]]


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
    if not is_mystery(recipe_id):
        return read_record(solutions / recipe_id / MEASURED, _Measured)
    case = load_mystery(recipe_id)
    if case.is_healthy:
        outcomes = read_record(solutions / SOUND, _Sound).outcomes
        return _Measured(format_version=1, outcomes=outcomes.get(case.sound, {}), trips={})
    return _together([_measured(cause, solutions) for cause in case.causes])


def _together(parts: Sequence[_Measured]) -> _Measured:
    """Return what is found of several breaks at once: what one trips, and what no other one changes."""
    trips = {name: outcome for part in parts for name, outcome in part.trips.items()}
    alike = [set(part.outcomes.items()) for part in parts]
    outcomes = {name: outcome for name, outcome in set.intersection(*alike) if name not in trips}
    return _Measured(format_version=1, outcomes=outcomes, trips=trips)


_Edits = Annotated[tuple[Annotated[Edit, BeforeValidator(edit_of)], ...], Field(min_length=1, strict=False)]
_Named = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], _Edits]


class KnownEdit(StrictModel):
    """One edit of an experiment, with the verdict that it must get."""

    id: str
    verdict: Verdict
    edits: tuple[Edit, ...]

    def source(self, source: str) -> str:
        """Return the edited source. Raises `ValueError` if a `find` does not occur exactly once."""
        return apply_edits(source, self.edits, where=f"edit {self.id}")


@dataclass(frozen=True)
class KnownFix:
    """An experiment as a student of a recipe may hand it in, and the verdict that it must get."""

    recipe: Recipe
    id: str
    verdict: Verdict
    source: str


class _File(StrictModel):
    model_config = ConfigDict(extra="allow")

    format_version: Literal[1]
    __pydantic_extra__: dict[Verdict, _Named]  # type: ignore[assignment]


def load_variants(recipe_id: str, solutions: Path = SOLUTIONS) -> tuple[KnownEdit, ...]:
    """Return the edits special to a recipe; none if it has no file. Raises `UserError` for a wrong file."""
    return _load(solutions / recipe_id / "variants.toml")


def load_shared_edits(experiment: str, solutions: Path = SOLUTIONS) -> tuple[KnownEdit, ...]:
    """Return the edits that all recipes of an experiment share. Raises `UserError` for a wrong file."""
    return _load(solutions / f"{experiment}.edits.toml")


def known_fixes(recipe: Recipe, solutions: Path = SOLUTIONS) -> tuple[list[KnownFix], list[str]]:
    """Return the known fixes of a recipe, the reference first, and the ids of the edits that were left out.

    A masking edit of the experiment is left out if the break has changed its place. Raises `ValueError` for an edit
    that does not fit its own source.
    """
    broken, healthy = recipe.broken_source(), recipe.healthy_source()
    found = [KnownFix(recipe, "reference", "full", healthy)]
    for item in load_variants(recipe.id, solutions):
        found.append(KnownFix(recipe, item.id, item.verdict, item.source(broken)))
    left_out = []
    for item in load_shared_edits(recipe.experiment):
        edited = item.source(healthy)
        if item.verdict in ("masking", "wrong"):
            try:
                edited = item.source(broken)
            except ValueError:
                left_out.append(item.id)
                continue
        found.append(KnownFix(recipe, item.id, item.verdict, edited))
    return found, left_out


def _load(path: Path) -> tuple[KnownEdit, ...]:
    if not path.is_file():
        return ()
    found = read_record(path, _File).__pydantic_extra__
    return tuple(
        KnownEdit(id=name, verdict=verdict, edits=edits)
        for verdict, named in found.items()
        for name, edits in named.items()
    )
