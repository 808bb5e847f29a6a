import hashlib

import numpy as np
import pytest

from harness.data.image_sets import Split
from harness.data.subsets import draw_subset
from harness.errors import UserError

# Each image is its own index, so that a drawn image says which one it was.
_LABELS = np.array([index * 7 % 10 for index in range(400)] + [3] * 50, dtype=np.int64)
_IMAGES = np.arange(450, dtype=np.uint16).view(np.uint8).reshape(450, 1, 1, 2)


def _indices(split: Split) -> list[int]:
    return [int(index) for index in split.images.reshape(-1, 2).view(np.uint16)[:, 0]]


@pytest.mark.parametrize("size", [10, 50, 400])
def test_a_subset_is_balanced_labelled_right_and_without_repeats(size: int) -> None:
    subset = draw_subset(_IMAGES, _LABELS, size, 0)
    indices = _indices(subset)
    assert len(set(indices)) == size
    assert (subset.labels == _LABELS[indices]).all()
    assert np.bincount(subset.labels).tolist() == [size // 10] * 10
    assert subset.images.flags.c_contiguous


def test_the_drawing_is_fixed_for_good() -> None:
    drawn = str(_indices(draw_subset(_IMAGES, _LABELS, 200, 5)))
    assert (
        hashlib.sha256(drawn.encode()).hexdigest()
        == "2bf5d137b7a17193a5692de4785e86ec610807d76706e35e6e392ae730a16921"
    )


def test_the_subset_is_shuffled_and_the_seed_chooses_it() -> None:
    drawn = [_indices(draw_subset(_IMAGES, _LABELS, 100, seed)) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    labels = _LABELS[drawn[0]]
    assert np.mean(labels[1:] == labels[:-1]) < 0.3


def test_a_smaller_subset_lies_within_a_larger_one() -> None:
    small, large = (set(_indices(draw_subset(_IMAGES, _LABELS, size, 0))) for size in (50, 200))
    assert small < large


def test_a_subset_from_the_end_is_disjoint_as_long_as_both_fit_in() -> None:
    front = set(_indices(draw_subset(_IMAGES, _LABELS, 300, 0)))
    back = set(_indices(draw_subset(_IMAGES, _LABELS, 100, 0, from_end=True)))
    assert len(back) == 100
    assert not front & back


@pytest.mark.parametrize("size", [-10, 0, 5, 101, 410])
def test_a_size_that_cannot_be_is_refused_with_the_possible_ones(size: int) -> None:
    with pytest.raises(UserError, match=f"of {size} images .* multiple of 10 from 10 to 400"):
        draw_subset(_IMAGES, _LABELS, size, 0)
