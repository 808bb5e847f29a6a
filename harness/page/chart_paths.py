"""From the points of a series to SVG path data: gaps, thinning that keeps extremes, markers."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

Marker = Literal["dot", "ring", "square"]
Point = tuple[float, float | None]  # a y of None, NaN or infinity is a gap
Position = tuple[float, float] | None  # in user units of the drawing; None lifts the pen

_POINTS_A_COLUMN = 5  # what thinning leaves of one column: first, least, greatest, last, and one gap


def thin(positions: Sequence[Position], columns: int, low: float, high: float) -> list[Position]:
    """Return at most five entries for each of `columns` equal slices of [low, high], in the same order.

    A slice keeps its first, lowest, highest and last point, so that no spike and no join is lost at the size
    at which the drawing is looked at, and one gap if it has any. Short series come back whole.
    A gap belongs to the slice of the point before it.
    """
    if len(positions) <= 2 * columns:
        return list(positions)
    kept: list[Position] = []
    slice_points: list[Position] = []
    current = 0
    for position in positions:
        if position is not None:
            column = min(int((position[0] - low) / (high - low) * columns), columns - 1)
            if column != current:
                kept += _thin_slice(slice_points)
                slice_points, current = [], column
        slice_points.append(position)
    return kept + _thin_slice(slice_points)


def _thin_slice(positions: list[Position]) -> list[Position]:
    if len(positions) <= _POINTS_A_COLUMN:
        return positions
    points = [(index, position) for index, position in enumerate(positions) if position is not None]
    if not points:
        return positions[:1]
    chosen = {points[0][0], points[-1][0]}
    chosen |= {pick(points, key=lambda item: item[1][1])[0] for pick in (min, max)}
    if len(points) < len(positions):
        chosen.add(next(index for index, position in enumerate(positions) if position is None))
    return [positions[index] for index in sorted(chosen)]


def line_path(positions: Sequence[Position]) -> str:
    """Return path data for a polyline with gaps; a point between two gaps becomes a dot."""
    pieces: list[str] = []
    pen_down = False
    alone = False
    for position in positions:
        if position is None:
            if alone:
                pieces.append("h1.5")
            pen_down = alone = False
            continue
        pieces.append(f"{'L' if pen_down else 'M'}{position[0]:.1f} {position[1]:.1f}")
        alone = not pen_down
        pen_down = True
    if alone:
        pieces.append("h1.5")
    return "".join(pieces)


def marker_path(marker: Marker, positions: Sequence[Position]) -> str:
    """Return path data with a marker at each point; ring and square are outlines, larger than a dot."""
    return "".join(_marker(marker, *position) for position in positions if position is not None)


def _marker(marker: Marker, x: float, y: float) -> str:
    if marker == "square":
        return f"M{x - 7:.1f} {y - 7:.1f}h14v14h-14z"
    radius = 3 if marker == "dot" else 5.5
    arc = f"a{radius} {radius} 0 1 0 "
    return f"M{x - radius:.1f} {y:.1f}{arc}{2 * radius} 0{arc}{-2 * radius} 0z"


def non_finite_runs(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    """Yield (first x, last x) of each stretch of points that are recorded and not finite."""
    start: float | None = None
    end = 0.0
    for x, y in points:
        if y is not None and not math.isfinite(y):
            start = x if start is None else start
            end = x
        elif start is not None:
            yield start, end
            start = None
    if start is not None:
        yield start, end
