"""Draws class-balanced subsets: the same images for the same seed, on every machine and release of NumPy."""

import numpy as np
from numpy.typing import NDArray

from harness.data.image_sets import Split
from harness.errors import UserError

CLASSES = 10


def draw_subset(
    images: NDArray[np.uint8], labels: NDArray[np.int64], size: int, seed: int, *, from_end: bool = False
) -> Split:
    """Draw `size` images, equally many of each class, in shuffled order.

    Each class is shuffled once by `seed` and read from its front: a smaller subset lies within a larger one
    of the same seed. With `from_end` it is read from its back, so that held-out images and validation
    images of one seed are disjoint as long as both fit in.

    images: uint8 (N, C, H, W); labels: int64 (N,) with values below 10; size: a multiple of 10.
    Raises UserError for a size that is no multiple of 10 or more than there is.
    """
    each, rest = divmod(size, CLASSES)
    smallest = int(np.bincount(labels, minlength=CLASSES).min())
    if rest or not 0 < each <= smallest:
        raise UserError(
            f"A class-balanced subset of {size} images cannot be drawn: "
            f"choose a multiple of {CLASSES} from {CLASSES} to {CLASSES * smallest}."
        )
    # RandomState, because its stream is frozen for good; default_rng may change with a release of NumPy.
    random = np.random.RandomState(seed)
    shuffled_classes = [random.permutation(np.flatnonzero(labels == label)) for label in range(CLASSES)]
    chosen = np.concatenate(
        [members[::-1][:each] if from_end else members[:each] for members in shuffled_classes]
    )
    # Shuffled by a stream of its own: the order of one subset does not depend on the one before it.
    order = np.random.RandomState(seed).permutation(chosen)
    return Split(np.ascontiguousarray(images[order]), labels[order])
