"""The ten figures of the data set `shapes`, each a yes-or-no question about a point of the plane.

Every figure lies in the square from -1 to 1, x to the right and y downwards, and is its own mirror image,
so that a horizontal flip never turns one class into another.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Coordinates = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STAR = [
    *[(0.0, -1.0), (0.225, -0.309), (0.951, -0.309), (0.364, 0.118), (0.588, 0.809)],
    *[(0.0, 0.382), (-0.588, 0.809), (-0.364, 0.118), (-0.951, -0.309), (-0.225, -0.309)],
]
_ARROW = [(0.0, -1.0), (0.75, -0.1), (0.27, -0.1), (0.27, 0.95), (-0.27, 0.95), (-0.27, -0.1), (-0.75, -0.1)]
_TRIANGLE = [(0.0, -0.95), (0.9, 0.65), (-0.9, 0.65)]
_HOURGLASS = [(-0.72, -0.9), (0.72, -0.9), (0.1, 0.0), (0.72, 0.9), (-0.72, 0.9), (-0.1, 0.0)]


def _polygon(corners: list[tuple[float, float]], x: Coordinates, y: Coordinates) -> Mask:
    """Even-odd rule: a point is inside when a ray from it crosses the outline an odd number of times."""
    inside = np.zeros(x.shape, dtype=np.bool_)
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if y1 == y2:
            continue
        inside ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside


def _disc(x: Coordinates, y: Coordinates) -> Mask:
    return x * x + y * y < 0.85 * 0.85


def _ring(x: Coordinates, y: Coordinates) -> Mask:
    distance = x * x + y * y
    return (distance < 0.92 * 0.92) & (distance > 0.5 * 0.5)


def _square(x: Coordinates, y: Coordinates) -> Mask:
    return (np.abs(x) < 0.75) & (np.abs(y) < 0.75)


def _triangle(x: Coordinates, y: Coordinates) -> Mask:
    return _polygon(_TRIANGLE, x, y)


def _star(x: Coordinates, y: Coordinates) -> Mask:
    return _polygon(_STAR, x, y)


def _cross(x: Coordinates, y: Coordinates) -> Mask:
    upright = (np.abs(x) < 0.3) & (np.abs(y) < 0.92)
    level = (np.abs(y) < 0.3) & (np.abs(x) < 0.92)
    return upright | level


def _crescent(x: Coordinates, y: Coordinates) -> Mask:
    bite = x * x + (y + 0.5) * (y + 0.5) < 0.72 * 0.72
    return (x * x + y * y < 0.92 * 0.92) & ~bite


def _heart(x: Coordinates, y: Coordinates) -> Mask:
    across, up = x * 1.25, 0.15 - y * 1.2
    round_part = across * across + up * up - 1.0
    return round_part * round_part * round_part < across * across * up * up * up


def _arrow(x: Coordinates, y: Coordinates) -> Mask:
    return _polygon(_ARROW, x, y)


def _hourglass(x: Coordinates, y: Coordinates) -> Mask:
    return _polygon(_HOURGLASS, x, y)


# The position in this table is the label.
FIGURES: dict[str, Callable[[Coordinates, Coordinates], Mask]] = {
    "disc": _disc,
    "ring": _ring,
    "square": _square,
    "triangle": _triangle,
    "star": _star,
    "cross": _cross,
    "crescent": _crescent,
    "heart": _heart,
    "arrow": _arrow,
    "hourglass": _hourglass,
}
