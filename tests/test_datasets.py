import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from grader.replay.data import HELDOUT_FOLDER
from harness.data.datasets import EMBEDDED_FOLDER, Dataset, Split, digest_of_splits, draw_subset, read_embedded
from harness.errors import UserError


def _split(fill: int = 0, images: int = 4) -> Split:
    return Split(np.full((images, 1, 2, 3), fill, np.uint8), np.arange(images, dtype=np.int64))


def test_the_digest_is_of_the_values_and_fixed_for_good() -> None:
    plain = _split()
    assert digest_of_splits(plain) == "240adf3d786fce3df45db3818393d487a01be083bde85db1d410e5b613d2a3dd"
    turned = Split(np.asfortranarray(plain.inputs), plain.labels.astype(">i8"))
    assert digest_of_splits(turned) == digest_of_splits(plain)
    others = [
        _split(fill=1),
        _split(images=5),
        Split(plain.inputs.reshape(4, 1, 3, 2), plain.labels),
        Split(plain.inputs.astype(np.float32), plain.labels),
        Split(plain.inputs, plain.labels[::-1]),
        Split(plain.inputs, plain.labels.astype(np.int32)),
    ]
    assert len({digest_of_splits(split) for split in [plain, *others]}) == 7
    first, second = Dataset.of("some", plain, others[0]), Dataset.of("some", others[0], plain)
    assert first.digest == digest_of_splits(plain, others[0]) != second.digest


@pytest.mark.parametrize("name", ["digits", "shapes"])
def test_embedded_splits_are_disjoint_balanced_and_shuffled(name: str) -> None:
    splits = [*read_embedded(name, ["train", "validation"]), *read_embedded(name, ["heldout"], HELDOUT_FOLDER)]
    images = np.concatenate([split.inputs for split in splits])
    assert len({image.tobytes() for image in images}) == len(images)
    for split in splits:
        counts = np.bincount(split.labels)
        assert len(counts) == 10
        assert counts.max() - counts.min() <= max(2, 0.05 * counts.max())
        # In random order, a class equals the class before it about every tenth time. In sorted order, nearly always.
        assert 0.02 < np.mean(split.labels[1:] == split.labels[:-1]) < 0.2


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("digits.npz", b"PK", r"digits\.npz was altered.*git checkout"),
        ("SHA256SUMS", None, r"No such file.*SHA256SUMS.*git checkout"),
    ],
)
def test_an_altered_or_missing_embedded_file_is_named(
    file: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    for name in ("digits.npz", "SHA256SUMS"):
        shutil.copy(EMBEDDED_FOLDER / name, tmp_path)
    (tmp_path / file).unlink()
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_embedded("digits", ["train"], tmp_path)


# Each image contains its own index, so that a drawn image shows which one it is.
_LABELS = np.array([index * 7 % 10 for index in range(400)] + [3] * 50, dtype=np.int64)
_IMAGES = np.arange(450, dtype=np.uint16).view(np.uint8).reshape(450, 1, 1, 2)


def _drawn(size: int, seed: int, *, from_end: bool = False) -> list[int]:
    split = draw_subset(_IMAGES, _LABELS, size, seed, from_end=from_end)
    indices = [int(index) for index in split.inputs.reshape(-1, 2).view(np.uint16)[:, 0]]
    assert len(set(indices)) == size
    assert (split.labels == _LABELS[indices]).all()
    assert np.bincount(split.labels).tolist() == [size // 10] * 10
    return indices


def test_a_subset_is_balanced_fixed_for_good_and_nested() -> None:
    drawn = _drawn(200, 5)
    digest = hashlib.sha256(str(drawn).encode()).hexdigest()
    assert digest == "2bf5d137b7a17193a5692de4785e86ec610807d76706e35e6e392ae730a16921"
    assert drawn != _drawn(200, 6)
    assert set(_drawn(50, 0)) < set(_drawn(200, 0)) < set(_drawn(400, 0))
    assert not set(_drawn(300, 0)) & set(_drawn(100, 0, from_end=True))


@pytest.mark.parametrize("size", [-10, 0, 5, 101, 410])
def test_an_impossible_size_is_refused_with_the_possible_ones(size: int) -> None:
    with pytest.raises(UserError, match=f"of {size} images .* multiple of 10 from 10 to 400"):
        draw_subset(_IMAGES, _LABELS, size, 0)
