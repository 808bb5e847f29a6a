import shutil
from pathlib import Path

import numpy as np
import pytest

from harness.data.embedded_data import STUDENTS_FOLDER, read_embedded_split, read_embedded_splits
from harness.errors import UserError

GRADERS_FOLDER = Path(__file__).parents[1] / "grader" / "replay" / "heldout"
NAMES = ("digits", "shapes")


@pytest.mark.parametrize("name", NAMES)
def test_no_image_is_in_two_splits_or_twice_in_one(name: str) -> None:
    train, validation = read_embedded_splits(name, ("train", "validation"))
    heldout = read_embedded_split(name, "heldout", GRADERS_FOLDER)
    images = np.concatenate([split.images for split in (train, validation, heldout)])
    assert len({image.tobytes() for image in images}) == len(images)


@pytest.mark.parametrize(
    ("name", "split", "folder", "least", "most"),
    [
        ("digits", "train", STUDENTS_FOLDER, 124, 130),
        ("digits", "validation", STUDENTS_FOLDER, 25, 26),
        ("digits", "heldout", GRADERS_FOLDER, 25, 27),
        ("shapes", "train", STUDENTS_FOLDER, 192, 192),
        ("shapes", "validation", STUDENTS_FOLDER, 40, 40),
        ("shapes", "heldout", GRADERS_FOLDER, 40, 40),
    ],
)
def test_every_split_is_balanced_and_shuffled(
    name: str, split: str, folder: Path, least: int, most: int
) -> None:
    labels = read_embedded_split(name, split, folder).labels
    counts = np.bincount(labels)
    assert (counts.min(), counts.max()) == (least, most)
    # Ten shuffled classes repeat the one before about every tenth time; sorted ones would nearly always.
    assert 0.02 < np.mean(labels[1:] == labels[:-1]) < 0.2


def test_the_mean_colour_of_a_shape_hardly_tells_its_class() -> None:
    train, validation = read_embedded_splits("shapes", ("train", "validation"))
    means = np.stack([train.images[train.labels == label].mean(axis=(0, 2, 3)) for label in range(10)])
    colours = validation.images.mean(axis=(2, 3))
    nearest = ((colours[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == validation.labels) < 0.25


@pytest.mark.parametrize("name", NAMES)
def test_archives_are_small(name: str) -> None:
    for folder in (STUDENTS_FOLDER, GRADERS_FOLDER):
        assert (folder / f"{name}.npz").stat().st_size < 1_500_000


def _copy(tmp_path: Path) -> Path:
    for file in ("digits.npz", "SHA256SUMS"):
        shutil.copy(STUDENTS_FOLDER / file, tmp_path)
    return tmp_path


def test_one_altered_byte_is_noticed(tmp_path: Path) -> None:
    archive = _copy(tmp_path) / "digits.npz"
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    with pytest.raises(UserError, match=r"digits\.npz was altered.*git checkout"):
        read_embedded_split("digits", "train", tmp_path)


@pytest.mark.parametrize("file", ["digits.npz", "SHA256SUMS"])
def test_a_missing_file_is_named(file: str, tmp_path: Path) -> None:
    (_copy(tmp_path) / file).unlink()
    with pytest.raises(UserError, match=rf"No such file.*{file}.*git checkout"):
        read_embedded_split("digits", "train", tmp_path)
