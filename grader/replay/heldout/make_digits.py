"""Make the data set `digits` from scikit-learn's: `python -m grader.replay.heldout.make_digits [repository]`.

It enlarges the 8x8 originals three times by cubic interpolation and frames them in black. The arithmetic is in whole
numbers, so that every machine makes the same pixels.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.replay.heldout.archives import Arrays, write_archives

SEED = 20240611
SIZES = {"train": 1280, "validation": 257, "heldout": 260}
_SCALE, _CUT = 3, 1

# Catmull-Rom weights of the four neighbours, times 54, for a point 2/3, 0 and 1/3 of a pixel past a sample.
_WEIGHTS = np.array([[-2, 18, 42, -4], [0, 54, 0, 0], [-4, 42, 18, -2]])
_UNIT = 54


def enlargement_matrix(side: int) -> NDArray[np.int64]:
    """Return the matrix (_SCALE * side, side) that enlarges one axis; each row sums to _UNIT."""
    matrix = np.zeros((_SCALE * side, side), dtype=np.int64)
    for row in range(_SCALE * side):
        # The middle of the small pixel, in thirds of a large one, counted from the first sample.
        sample = (row - 1) // _SCALE
        for offset, weight in zip(range(-1, 3), _WEIGHTS[row % _SCALE], strict=True):
            matrix[row, min(max(sample + offset, 0), side - 1)] += weight
    return matrix


def enlarge(images: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Enlarge (N, 8, 8) with values from 0 to 16 into uint8 (N, 1, 28, 28)."""
    # One black sample all round lets strokes fade into the frame; then one pixel of the frame is cut again.
    framed = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    matrix = enlargement_matrix(framed.shape[-1])[_CUT:-_CUT]
    large = matrix @ framed @ matrix.T
    grey = (large * 255 + 8 * _UNIT * _UNIT) // (16 * _UNIT * _UNIT)
    return np.asarray(np.clip(grey, 0, 255).astype(np.uint8)[:, None])


def split_by_class(labels: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Return shuffled indices of `labels` for each split; every split has its share of every class."""
    shuffled = np.random.RandomState(SEED).permutation(len(labels))
    # The k-th of the n images of a class stands at (k + 1/2) / n: sorted by that, every stretch is balanced.
    place = np.empty(len(labels))
    for label in np.unique(labels):
        members = shuffled[labels[shuffled] == label]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    balanced = shuffled[np.argsort(place[shuffled], kind="stable")]
    ends = np.cumsum(list(SIZES.values()))[:-1]
    shuffle = np.random.RandomState(SEED + 1).permutation
    return {name: shuffle(part) for name, part in zip(SIZES, np.split(balanced, ends), strict=True)}


def make_splits() -> dict[str, Arrays]:
    """Return images and labels of every split, from the copy of the UCI digits in scikit-learn."""
    from sklearn.datasets import load_digits

    originals = load_digits()
    images = enlarge(originals.images.astype(np.int64))
    labels = originals.target.astype(np.int64)
    return {name: (images[indices], labels[indices]) for name, indices in split_by_class(labels).items()}


def main() -> None:
    """Make every split and write the archives."""
    repository = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[3]
    write_archives(repository, "digits", make_splits())


if __name__ == "__main__":
    main()
