"""The scripts that made the embedded data make the same arrays again."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from grader.replay.heldout import make_digits, make_shapes
from grader.replay.heldout.archives import GRADERS_FOLDER, STUDENTS_FOLDER, Arrays, write_archives
from harness.data.datasets import read_embedded

ROOT = Path(__file__).parents[1]


def _assert_stored(name: str, split: str, made: Arrays) -> None:
    folder = ROOT / (GRADERS_FOLDER if split == "heldout" else STUDENTS_FOLDER)
    (stored,) = read_embedded(name, [split], folder)
    assert (stored.images == made[0]).all()
    assert (stored.labels == made[1]).all()


def test_digits_are_made_again() -> None:
    for split, made in make_digits.make_splits().items():
        _assert_stored("digits", split, made)


@pytest.mark.parametrize("split", make_shapes.SIZES)
def test_shapes_are_drawn_again(split: str) -> None:
    seed = make_shapes.SEED + list(make_shapes.SIZES).index(split)
    _assert_stored("shapes", split, make_shapes.draw_split(make_shapes.SIZES[split], seed))


def test_archives_are_the_same_bytes_and_listed_in_sums(tmp_path: Path) -> None:
    images, labels = np.zeros((2, 1, 3, 3), np.uint8), np.arange(2, dtype=np.int64)
    splits = dict.fromkeys(("train", "validation", "heldout"), (images, labels))
    for folder in ("a", "b"):
        write_archives(tmp_path / folder, "tiny", splits)
    for part in (STUDENTS_FOLDER, GRADERS_FOLDER):
        first, second = (tmp_path / folder / part / "tiny.npz" for folder in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()
        digest = hashlib.sha256(first.read_bytes()).hexdigest()
        assert (first.parent / "SHA256SUMS").read_text() == f"{digest}  tiny.npz\n"
    students = tmp_path / "a" / STUDENTS_FOLDER
    assert (read_embedded("tiny", ["validation"], students)[0].labels == labels).all()
    assert "heldout_images" not in np.load(students / "tiny.npz")
