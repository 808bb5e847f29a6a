"""The points of the checks: read and validate `rubric.toml`, and scale judged checks to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.score.verdict import CRITERIA, Check, Criterion
from harness.errors import UserError
from harness.toml_file import read_table

DEFAULT_RUBRIC = Path(__file__).resolve().parent / "rubric.toml"

Weights = Mapping[Criterion, Mapping[str, float]]


def load_weights(path: Path = DEFAULT_RUBRIC) -> Weights:
    """Return the points of every check. Raises `UserError` that names what is wrong with the file, and where."""
    weights = read_weights(path, CRITERIA)
    if path == DEFAULT_RUBRIC:
        return weights
    for criterion, known in read_weights(DEFAULT_RUBRIC, CRITERIA).items():
        for name in weights[criterion].keys() - known.keys():
            there = ", ".join(known)
            raise UserError(f"{path}: {criterion} has no check {name!r}: there are {there}. Remove the line.")
        for name in known.keys() - weights[criterion].keys():
            raise UserError(f"{path}: {criterion}.{name} is missing: give it points, 0 to leave it out.")
    return weights


def read_weights(path: Path, criteria: Sequence[Criterion]) -> Weights:
    """Return the points of every check of these criteria. Raises `UserError` as `load_weights` does."""
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
    if table.keys() != set(criteria) or not all(isinstance(table[name], dict) for name in criteria):
        there, wanted = ", ".join(sorted(table)), ", ".join(criteria)
        raise UserError(f"{path} has the tables {there}: the criteria are {wanted}.")
    weights: dict[Criterion, dict[str, float]] = {name: table[name] for name in criteria}
    for criterion, checks in weights.items():
        for name, points in checks.items():
            if isinstance(points, bool) or not isinstance(points, int | float) or not 0 <= points <= 100:
                wanted = f"a number of points from 0 to 100, not {points!r}"
                raise UserError(f"{path}: {criterion}.{name} must be {wanted}.")
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
