"""Spearman's rank correlation, with average ranks where values are equal."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the correlation of the ranks, -1 to 1; None where one side has no two different values.

    Raises `ValueError` where the lengths differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} values cannot be ranked against {len(second)}")
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])


def _ranks(values: Sequence[float]) -> NDArray[np.float64]:
    # Equal values share the mean of the places that they take together.
    _, which, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: NDArray[np.float64] = last - (counts - 1) / 2.0
    return means[which]
