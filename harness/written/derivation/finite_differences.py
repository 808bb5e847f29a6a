"""Derivatives by central differences, entry by entry, in float64."""

from collections.abc import Callable, Mapping

import numpy as np

from harness.written.derivation.problem import Array

# The cube root of the rounding error of float64 is 6e-6: there, what is cut off and what is rounded weigh alike
# (Nocedal and Wright, "Numerical Optimization", 2nd ed., section 8.1).
STEP = 6e-6


def central_differences(
    objective: Callable[[Mapping[str, Array]], float], inputs: Mapping[str, Array], name: str
) -> Array:
    """Return the derivative of `objective(inputs)` by each entry of one input; twice as many calls as entries."""
    moved = {other: np.array(array) for other, array in inputs.items()}
    entries, found = moved[name].reshape(-1), np.zeros(inputs[name].size)
    for place, value in enumerate(inputs[name].reshape(-1)):
        entries[place] = value + STEP
        above = objective(moved)
        entries[place] = value - STEP
        below = objective(moved)
        entries[place] = value
        found[place] = (above - below) / (2 * STEP)
    return found.reshape(inputs[name].shape)


def relative_error(found: Array, right: Array) -> float:
    """Return the largest difference over the largest entry of both; infinity for another shape, or no number.

    Entries are not divided one by one: next to zero, rounding alone makes any quotient.
    """
    if found.shape != right.shape or not (np.isfinite(found).all() and np.isfinite(right).all()):
        return float("inf")
    scale = max(np.abs(found).max(initial=0.0), np.abs(right).max(initial=0.0))
    return float(np.abs(found - right).max(initial=0.0) / scale) if scale > 0 else 0.0
