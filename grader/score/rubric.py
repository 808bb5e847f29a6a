"""Read the rubric: the points of each item, and the gates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from harness.errors import UserError
from harness.formats.toml_file import StrictModel, read_record

# A written exercise defines its own criteria in its `judge.toml`.
Criterion = Annotated[str, Field(pattern="^[a-z][a-z_]{0,39}$")]

CRITERIA: tuple[Criterion, ...] = ("reproducibility", "diagnostics", "fix", "explanation")
DEFAULT_RUBRIC = Path(__file__).resolve().parent / "rubric.toml"
_Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
_Most = _Points | Literal[False]


class Gates(StrictModel):
    """The settings of the gates that `grader.score.gates` applies. The value False switches a gate off.

    fixed_run: whether the fixed run earns no points if the edit fixes nothing.
    wrong_cause: whether the other facts in the diagnosis earn no points if its cause is wrong.
    no_insight: the largest total if neither the cause nor the fix is correct.
    healthy_blamed: the largest total if nothing is broken, but the diagnosis names a cause.
    healthy_unproved: the largest total if the diagnosis rightly says healthy, but without proof.
    """

    fixed_run: bool = True
    wrong_cause: bool = True
    no_insight: _Most = 40.0
    healthy_blamed: _Most = 40.0
    healthy_unproved: _Most = 40.0


class Weights(dict[Criterion, Mapping[str, float]]):
    """The points of every rubric item, by criterion, and the gates."""

    def __init__(self, points: Mapping[Criterion, Mapping[str, float]], gates: Gates) -> None:
        super().__init__(points)
        self.gates = gates


class _Rubric(StrictModel):
    """The file `rubric.toml`: a table for each criterion, with the points of its items, and a table of gates."""

    model_config = ConfigDict(extra="allow")

    format_version: Literal[1]
    gates: Gates = Gates()
    __pydantic_extra__: dict[Criterion, dict[str, _Points]]


def load_weights(path: Path = DEFAULT_RUBRIC) -> Weights:
    """Return the points of every rubric item, and the gates. Raises `UserError` for a wrong or missing item."""
    weights = read_weights(path)
    ours, theirs = (
        {f"{criterion}.{name}": None for criterion, checks in table.items() for name in checks}
        for table in (read_weights(DEFAULT_RUBRIC), weights)
    )
    for name in [one for one in theirs if one not in ours]:  # in the order of the file
        raise UserError(
            f"{path}: {name} is not an item of the rubric: remove that line. The items are {', '.join(ours)}."
        )
    for name in ours.keys() - theirs.keys():
        raise UserError(f"{path}: {name} is missing: add it with its points, or with 0 to leave it out.")
    return weights


def read_weights(path: Path) -> Weights:
    """Return the points of every item in a rubric file, and its gates. Raises `UserError` if the sum is not 100."""
    rubric = read_record(path, _Rubric)
    weights = Weights(rubric.__pydantic_extra__, rubric.gates)
    total = sum(sum(checks.values()) for checks in weights.values())
    if round(total, 6) != 100:
        raise UserError(f"{path}: the points add up to {total:g}, not to 100: change some of them.")
    return weights
