"""How far the outputs of an answer are from what is right: by how much, where, and whether by the batch size alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.written.derivation.finite_differences import relative_error
from harness.written.derivation.problem import Array

# The bound of the exercise.
TOLERANCE = 1e-6
# Over 100 texts and all right answers of `solutions/`, formulas in float64 stayed below 4e-15 in the plain cases;
# central differences of our own forward pass, at the best step, were above 8e-12.
EXACT = 1e-13

By = Mapping[str, Array]  # one output, by case
Factor = Literal["mean", "sum", "twice"]


@dataclass(frozen=True)
class Difference:
    """Where one output of one case is farthest from what is right. None for `place`: it has another shape."""

    case: str
    error: float
    place: str | None
    found: float
    right: float


# By which power of the batch size an output differs from what is right.
POWERS: Mapping[Factor, float] = {"mean": 0, "sum": 1, "twice": -1}


def factor_of(found: By, right: By, batch: Mapping[str, int], cases: Sequence[str]) -> Factor | None:
    """Return by what factor an output is right in all these cases, and None where it is right by none.

    mean: as it should be. sum: the batch size is missing, twice: it is there twice.
    """
    for name, power in POWERS.items():
        if all(
            case in found
            and relative_error(found[case], right[case] * float(batch[case]) ** power) < TOLERANCE
            for case in cases
        ):
            return name
    return None


def first_difference(name: str, found: By, right: By, cases: Sequence[str]) -> Difference | None:
    """Return the worst entry in the first of these cases in which an output is there and not right."""
    for case in cases:
        if case in found and relative_error(found[case], right[case]) >= TOLERANCE:
            return _worst(name, case, found[case], right[case])
    return None


def worst_error(found: By, right: By, cases: Sequence[str]) -> float:
    """Return the largest error of an output over these cases; infinity where one lacks it."""
    return max(relative_error(found[case], right[case]) if case in found else float("inf") for case in cases)


def same_values(one: Array, other: Array) -> bool:
    """Say whether two arrays agree, NaN and infinities included."""
    if one.shape != other.shape:
        return False
    finite = np.isfinite(one)
    if not (
        np.array_equal(finite, np.isfinite(other)) and np.array_equal(one[~finite], other[~finite], True)
    ):
        return False
    return relative_error(one[finite], other[finite]) < TOLERANCE


def _worst(name: str, case: str, found: Array, right: Array) -> Difference:
    error = relative_error(found, right)
    if found.shape != right.shape:
        return Difference(case, error, None, np.nan, np.nan)
    distance = np.abs(np.nan_to_num(found - right, nan=np.inf))
    place = np.unravel_index(np.argmax(distance), right.shape)
    where = name + "".join(f"[{index}]" for index in place)
    return Difference(case, error, where, float(found[place]), float(right[place]))
