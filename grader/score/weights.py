"""The points of the checks: read and validate `rubric.toml`, and scale judged checks to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from grader.score.verdict import Check, Criterion
from harness.errors import UserError
from harness.toml_file import StrictModel, read_record

DEFAULT_RUBRIC = Path(__file__).resolve().parent / "rubric.toml"

Weights = Mapping[Criterion, Mapping[str, float]]
_Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class _Rubric(StrictModel):
    """A table of points by check for each criterion."""

    model_config = ConfigDict(extra="allow")

    format_version: Literal[1]
    __pydantic_extra__: dict[Criterion, dict[str, _Points]]


def load_weights(path: Path = DEFAULT_RUBRIC) -> Weights:
    """Return the points of every check. Raises `UserError` that names what is wrong with the file, and where."""
    weights = read_weights(path)
    ours, theirs = (
        {f"{criterion}.{name}": None for criterion, checks in table.items() for name in checks}
        for table in (read_weights(DEFAULT_RUBRIC), weights)
    )
    for name in theirs.keys() - ours.keys():
        raise UserError(f"{path}: there is no check {name}: remove that line. There are {', '.join(ours)}.")
    for name in ours.keys() - theirs.keys():
        raise UserError(f"{path}: {name} is missing: give it points, 0 to leave it out.")
    return weights


def read_weights(path: Path) -> Weights:
    """Return the points of every check in a file. Raises `UserError` as `load_weights` does."""
    weights = read_record(path, _Rubric).__pydantic_extra__
    total = sum(sum(checks.values()) for checks in weights.values())
    if round(total, 6) != 100:
        raise UserError(f"{path}: the points add up to {total:g}, not to 100: change some of them.")
    return weights


def weighted(check: Check, maximum: float) -> Check:
    """Return the check scaled to another maximum."""
    if check.max == maximum:
        return check
    points = None if check.points is None else round(check.points * maximum / check.max, 2)
    return check.model_copy(update={"max": maximum, "points": points})
