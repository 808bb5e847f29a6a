import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from grader.replay.data import FOLDER as GRADERS_FOLDER
from harness.data.datasets import (
    EMBEDDED_FOLDER,
    Dataset,
    Split,
    digest_of_splits,
    draw_subset,
    read_embedded,
)
from harness.errors import UserError


def _split(fill: int = 0, images: int = 4) -> Split:
    return Split(np.full((images, 1, 2, 3), fill, np.uint8), np.arange(images, dtype=np.int64))


def test_the_digest_is_fixed_for_good() -> None:
    assert digest_of_splits(_split()) == "240adf3d786fce3df45db3818393d487a01be083bde85db1d410e5b613d2a3dd"


def test_every_difference_of_values_changes_the_digest_and_storage_does_not() -> None:
    plain = _split()
    turned = Split(np.asfortranarray(plain.images), plain.labels.astype(">i8"))
    assert digest_of_splits(turned) == digest_of_splits(plain)
    others = [
        _split(fill=1),
        _split(images=5),
        Split(plain.images.reshape(4, 1, 3, 2), plain.labels),
        Split(plain.images.astype(np.float32), plain.labels),
        Split(plain.images, plain.labels[::-1]),
        Split(plain.images, plain.labels.astype(np.int32)),
    ]
    assert len({digest_of_splits(split) for split in [plain, *others]}) == 7
    first, second = Dataset.of("some", plain, others[0]), Dataset.of("some", others[0], plain)
    assert first.digest == digest_of_splits(plain, others[0]) != second.digest


@pytest.mark.parametrize("name", ["digits", "shapes"])
def test_embedded_splits_are_disjoint_balanced_and_shuffled(name: str) -> None:
    splits = [
        *read_embedded(name, ["train", "validation"]),
        *read_embedded(name, ["heldout"], GRADERS_FOLDER),
    ]
    images = np.concatenate([split.images for split in splits])
    assert len({image.tobytes() for image in images}) == len(images)
    for split in splits:
        counts = np.bincount(split.labels)
        assert len(counts) == 10
        assert counts.max() - counts.min() <= max(2, 0.05 * counts.max())
        # Ten shuffled classes repeat the one before about every tenth time; sorted ones nearly always would.
        assert 0.02 < np.mean(split.labels[1:] == split.labels[:-1]) < 0.2
    for folder in (EMBEDDED_FOLDER, GRADERS_FOLDER):
        assert (folder / f"{name}.npz").stat().st_size < 1_500_000


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for file in ("digits.npz", "SHA256SUMS"):
        shutil.copy(EMBEDDED_FOLDER / file, tmp_path)
    return tmp_path


def test_one_altered_byte_of_an_embedded_archive_is_refused(copied: Path) -> None:
    content = bytearray((copied / "digits.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (copied / "digits.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"digits\.npz was altered.*git checkout"):
        read_embedded("digits", ["train"], copied)


def test_a_missing_embedded_file_is_named(copied: Path) -> None:
    (copied / "SHA256SUMS").unlink()
    with pytest.raises(UserError, match=r"No such file.*SHA256SUMS.*git checkout"):
        read_embedded("digits", ["train"], copied)


# Each image is its own index, so that a drawn image says which one it was.
_LABELS = np.array([index * 7 % 10 for index in range(400)] + [3] * 50, dtype=np.int64)
_IMAGES = np.arange(450, dtype=np.uint16).view(np.uint8).reshape(450, 1, 1, 2)


def _drawn(size: int, seed: int, *, from_end: bool = False) -> list[int]:
    split = draw_subset(_IMAGES, _LABELS, size, seed, from_end=from_end)
    return [int(index) for index in split.images.reshape(-1, 2).view(np.uint16)[:, 0]]


@pytest.mark.parametrize("size", [10, 50, 400])
def test_a_subset_is_balanced_labelled_right_and_without_repeats(size: int) -> None:
    subset, indices = draw_subset(_IMAGES, _LABELS, size, 0), _drawn(size, 0)
    assert len(set(indices)) == size
    assert (subset.labels == _LABELS[indices]).all()
    assert np.bincount(subset.labels).tolist() == [size // 10] * 10
    assert subset.images.flags.c_contiguous


def test_the_drawing_is_fixed_for_good_shuffled_and_chosen_by_the_seed() -> None:
    drawn = _drawn(200, 5)
    digest = hashlib.sha256(str(drawn).encode()).hexdigest()
    assert digest == "2bf5d137b7a17193a5692de4785e86ec610807d76706e35e6e392ae730a16921"
    assert drawn != _drawn(200, 6)
    labels = _LABELS[drawn]
    assert np.mean(labels[1:] == labels[:-1]) < 0.3


def test_subsets_of_one_seed_nest_and_those_from_both_ends_are_disjoint() -> None:
    assert set(_drawn(50, 0)) < set(_drawn(200, 0))
    assert not set(_drawn(300, 0)) & set(_drawn(100, 0, from_end=True))


@pytest.mark.parametrize("size", [-10, 0, 5, 101, 410])
def test_an_impossible_size_is_refused_with_the_possible_ones(size: int) -> None:
    with pytest.raises(UserError, match=f"of {size} images .* multiple of 10 from 10 to 400"):
        draw_subset(_IMAGES, _LABELS, size, 0)
