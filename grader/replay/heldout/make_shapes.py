"""Draw the data set `shapes`: `python -m grader.replay.heldout.make_shapes [repository]`.

Every random number is a uniform float from a seeded PCG64, and every pixel comes from additions, multiplications and
comparisons (sine and cosine are rounded first). Other processors and other releases of NumPy draw the same pixels.

A figure answers for each point of the plane whether the point is inside. It lies in the square from -1 to 1, x to the
right and y downwards, and is its own mirror image: a horizontal flip never turns one class into another.
"""

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.replay.heldout.archives import write_archives

SEED = 20240611
SIZES = {"train": 1920, "validation": 400, "heldout": 400}
SIDE = 32
LEVELS = 16
_FINE = 4  # each pixel is the mean of 4 x 4 samples of the outline

Image = NDArray[np.float64]
Mask = NDArray[np.bool_]

_STAR = [
    *[(0.0, -1.0), (0.225, -0.309), (0.951, -0.309), (0.364, 0.118), (0.588, 0.809)],
    *[(0.0, 0.382), (-0.588, 0.809), (-0.364, 0.118), (-0.951, -0.309), (-0.225, -0.309)],
]
_ARROW = [(0.0, -1.0), (0.75, -0.1), (0.27, -0.1), (0.27, 0.95), (-0.27, 0.95), (-0.27, -0.1), (-0.75, -0.1)]
_TRIANGLE = [(0.0, -0.95), (0.9, 0.65), (-0.9, 0.65)]
_HOURGLASS = [(-0.72, -0.9), (0.72, -0.9), (0.1, 0.0), (0.72, 0.9), (-0.72, 0.9), (-0.1, 0.0)]


def _polygon(corners: list[tuple[float, float]], x: Image, y: Image) -> Mask:
    """Even-odd rule: a point is inside when a ray from it crosses the outline an odd number of times."""
    inside = np.zeros(x.shape, dtype=np.bool_)
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if y1 == y2:
            continue
        inside ^= ((y1 > y) != (y2 > y)) & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return inside


def _ring(x: Image, y: Image) -> Mask:
    distance = x * x + y * y
    return (distance < 0.92 * 0.92) & (distance > 0.5 * 0.5)


def _cross(x: Image, y: Image) -> Mask:
    upright = (np.abs(x) < 0.3) & (np.abs(y) < 0.92)
    level = (np.abs(y) < 0.3) & (np.abs(x) < 0.92)
    return upright | level


def _crescent(x: Image, y: Image) -> Mask:
    bite = x * x + (y + 0.5) * (y + 0.5) < 0.72 * 0.72
    return (x * x + y * y < 0.92 * 0.92) & ~bite


def _heart(x: Image, y: Image) -> Mask:
    across, up = x * 1.25, 0.15 - y * 1.2
    round_part = across * across + up * up - 1.0
    return round_part * round_part * round_part < across * across * up * up * up


# The position in this table is the label.
FIGURES: dict[str, Callable[[Image, Image], Mask]] = {
    "disc": lambda x, y: x * x + y * y < 0.85 * 0.85,
    "ring": _ring,
    "square": lambda x, y: (np.abs(x) < 0.75) & (np.abs(y) < 0.75),
    "triangle": partial(_polygon, _TRIANGLE),
    "star": partial(_polygon, _STAR),
    "cross": _cross,
    "crescent": _crescent,
    "heart": _heart,
    "arrow": partial(_polygon, _ARROW),
    "hourglass": partial(_polygon, _HOURGLASS),
}


class Painter:
    """Draws one picture after another from one stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.Generator(np.random.PCG64(seed))

    def uniform(self, low: float, high: float) -> float:
        """Return one number between `low` and `high`."""
        return low + (high - low) * float(self._random.random())

    def picture(self, label: int) -> NDArray[np.uint8]:
        """Draw the figure of class `label`: uint8 (3, SIDE, SIDE)."""
        figure = list(FIGURES.values())[label]
        ground, paint = self._two_colours()
        canvas = self._textured(ground)
        for _ in range(int(self.uniform(1, 5))):
            canvas = _cover(canvas, self._fragment(), self._colour())
        x, y = self._pose(self.uniform(10.0, 13.0), 2.1, 18.0)
        canvas = _cover(canvas, _coverage(figure(x, y)), self._textured(paint))
        if self.uniform(0, 1) < 0.5:
            canvas = _cover(canvas, self._twig(), self._colour())
        levels = np.floor(np.clip(canvas, 0.0, 0.9999) * LEVELS)
        return (levels * (255 // (LEVELS - 1))).astype(np.uint8)

    def _colour(self) -> Image:
        return np.asarray(self._random.random((3, 1, 1)))

    def _two_colours(self) -> tuple[Image, Image]:
        """A colour for the ground and a lighter one for the figure."""
        while True:
            ground, paint = 0.8 * self._colour(), 1.0 - 0.8 * self._colour()
            red, green, blue = (float(step) for step in (paint - ground).reshape(3))
            if 0.3 * red + 0.6 * green + 0.1 * blue > 0.28:
                return ground, paint

    def _textured(self, colour: Image) -> Image:
        """Fill a picture with a colour that drifts in blotches: (3, SIDE, SIDE)."""
        strength = self.uniform(0.08, 0.32)
        cells = 2 + int(self.uniform(0, 4))
        blotches = self._random.random((1, cells + 1, cells + 1)) - 0.5
        drift = self._random.random((3, 2, 2)) - 0.5
        return colour + strength * _stretch(blotches) + 0.5 * strength * _stretch(drift)

    def _pose(self, radius: float, shift: float, degrees: float) -> tuple[Image, Image]:
        """Coordinates of every fine sample, seen by a figure of that radius in pixels, moved and turned."""
        angle = math.radians(self.uniform(-degrees, degrees))
        # Rounded, so that the last bit of a mathematical library cannot move an outline.
        sine, cosine = round(math.sin(angle), 6), round(math.cos(angle), 6)
        middle = (SIDE * _FINE - 1) / 2
        steps = (np.arange(SIDE * _FINE) - middle) / _FINE
        across = (steps - self.uniform(-shift, shift))[None, :] / radius
        down = (steps - self.uniform(-shift, shift))[:, None] / radius
        squeeze = self.uniform(0.85, 1.15)
        return (cosine * across + sine * down) * squeeze, (cosine * down - sine * across) / squeeze

    def _fragment(self) -> Image:
        """Clutter behind the figure: a small round or square blot."""
        x, y = self._pose(self.uniform(1.5, 4.0), 15.0, 180.0)
        if self.uniform(0, 1) < 0.5:
            return _coverage(x * x + y * y < 1.0)
        return _coverage((np.abs(x) < 1.0) & (np.abs(y) < 0.6))

    def _twig(self) -> Image:
        """A thin bar that hides a part of the figure."""
        x, y = self._pose(self.uniform(1.0, 1.8), 9.0, 180.0)
        return _coverage((np.abs(y) < 1.0) & (np.abs(x) < 9.0))


def _coverage(mask: NDArray[np.bool_]) -> Image:
    """The covered part of each pixel, from 0 to 1, of a mask of fine samples."""
    blocks = mask.reshape(SIDE, _FINE, SIDE, _FINE)
    return np.asarray(blocks.sum(axis=(1, 3)) / (_FINE * _FINE))


def _cover(below: Image, coverage: Image, above: Image) -> Image:
    return below + coverage * (above - below)


def _stretch(grid: Image) -> Image:
    """Enlarge a small grid (C, n, n) to (C, SIDE, SIDE), smoothly."""
    cells = grid.shape[-1] - 1
    position = (np.arange(SIDE) + 0.5) * cells / SIDE
    left = position.astype(np.int64)
    part = position - left
    part = part * part * (3.0 - 2.0 * part)
    wide = grid[:, :, left] + part * (grid[:, :, left + 1] - grid[:, :, left])
    return np.asarray(wide[:, left] + part[:, None] * (wide[:, left + 1] - wide[:, left]))


def draw_split(size: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw `size` pictures, equally many of each class: uint8 (size, 3, SIDE, SIDE), int64 (size,)."""
    painter = Painter(seed)
    order = np.argsort([painter.uniform(0, 1) for _ in range(size)], kind="stable")
    labels = (order % len(FIGURES)).astype(np.int64)
    return np.stack([painter.picture(int(label)) for label in labels]), labels


def main() -> None:
    """Draw every split and write the archives."""
    repository = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[3]
    splits = {name: draw_split(size, SEED + k) for k, (name, size) in enumerate(SIZES.items())}
    write_archives(repository, "shapes", splits)


if __name__ == "__main__":
    main()
