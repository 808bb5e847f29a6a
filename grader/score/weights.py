"""The points of the checks: read and validate `rubric.toml`, and scale judged checks to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.score.verdict import CRITERIA, Check, Criterion
from harness.errors import UserError
from harness.toml_file import read_table

DEFAULT = Path(__file__).resolve().parent / "rubric.toml"

Weights = Mapping[Criterion, Mapping[str, float]]


def load_weights(path: Path = DEFAULT) -> Weights:
    """Return the points of every check. Raises `UserError` that names what is wrong with the file, and where."""
    weights = _read(path, CRITERIA)
    if path != DEFAULT:
        _compare_names(path, weights, _read(DEFAULT, CRITERIA))
    _require_hundred(path, weights)
    return weights


def read_weights(path: Path, criteria: Sequence[Criterion], *, beside: Sequence[str] = ()) -> Weights:
    """Return the points of every check of these criteria; `beside` names tables without points.

    Raises `UserError` as `load_weights` does.
    """
    weights = _read(path, criteria, beside)
    _require_hundred(path, weights)
    return weights


def _require_hundred(path: Path, weights: Weights) -> None:
    total = sum(sum(checks.values()) for checks in weights.values())
    if round(total, 6) != 100:
        raise UserError(f"{path}: the points add up to {total:g}, not to 100: change some of them.")


def _read(
    path: Path, criteria: Sequence[Criterion], beside: Sequence[str] = ()
) -> dict[Criterion, dict[str, float]]:
    try:
        table = read_table(path)
    except FileNotFoundError:
        raise UserError(
            f"There is no rubric {path}: copy grader/score/rubric.toml there and change it."
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    if table.pop("format_version", None) != 1:
        raise UserError(f"{path}: format_version must be 1: copy grader/score/rubric.toml and change that.")
    unknown = [name for name in table if name not in (*criteria, *beside)]
    missing = [name for name in criteria if not isinstance(table.get(name), dict)]
    if unknown or missing:
        wrong = f"there is no criterion {unknown[0]!r}" if unknown else f"[{missing[0]}] is missing"
        raise UserError(f"{path}: {wrong}: the criteria are {', '.join(criteria)}.")
    for criterion in criteria:
        for name, points in table[criterion].items():
            if isinstance(points, bool) or not isinstance(points, int | float) or not 0 <= points <= 100:
                raise UserError(
                    f"{path}: {criterion}.{name} must be a number of points from 0 to 100, not {points!r}."
                )
    return {criterion: dict(table[criterion]) for criterion in criteria}


def _compare_names(path: Path, weights: Weights, known: Weights) -> None:
    for criterion in CRITERIA:
        for name in weights[criterion]:
            if name not in known[criterion]:
                there = ", ".join(known[criterion])
                raise UserError(
                    f"{path}: {criterion} has no check {name!r}: there are {there}. Remove the line."
                )
        for name in known[criterion]:
            if name not in weights[criterion]:
                raise UserError(f"{path}: {criterion}.{name} is missing: give it points, 0 to leave it out.")


def weighted(check: Check, maximum: float) -> Check:
    """Return the check scaled to another maximum."""
    if check.max == maximum:
        return check
    points = None if check.points is None else round(check.points * maximum / check.max, 2)
    return check.model_copy(update={"max": maximum, "points": points})
