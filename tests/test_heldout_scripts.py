"""The scripts that made the embedded data make the same arrays again."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from grader.replay.heldout import make_digits, make_shapes
from grader.replay.heldout.archives import GRADERS_FOLDER, STUDENTS_FOLDER, Arrays, write_archives
from harness.data import CLASS_NAMES
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


def test_enlarging_keeps_even_grey_even_and_samples_in_place() -> None:
    original = np.random.RandomState(0).randint(0, 17, (3, 8, 8)).astype(np.int64)
    large = make_digits.enlarge(original)
    assert large.shape == (3, 1, 28, 28)
    # The middle of every block of 3 x 3 is a sample of the original; one pixel of the frame is cut.
    assert (large[:, 0, 3:27:3, 3:27:3] == (original * 255 + 8) // 16).all()
    assert (make_digits.enlarge(np.full((1, 8, 8), 16))[0, 0, 8:20, 8:20] == 255).all()


@pytest.mark.parametrize("name", make_shapes.FIGURES)
def test_a_figure_fits_its_square_and_is_its_own_mirror_image(name: str) -> None:
    side = np.linspace(-1.5, 1.5, 300)  # an even number: no point lies on an outline's own axis
    x, y = np.meshgrid(side, side)
    mask = make_shapes.FIGURES[name](x, y)
    assert not mask[(np.abs(x) > 1) | (np.abs(y) > 1)].any()
    assert 0.07 < mask.mean() < 0.3
    assert np.mean(mask != mask[:, ::-1]) < 0.001


def test_figures_are_the_classes_and_differ_from_each_other() -> None:
    assert CLASS_NAMES["shapes"] == tuple(make_shapes.FIGURES)
    x, y = np.meshgrid(np.linspace(-1, 1, 101), np.linspace(-1, 1, 101))
    masks = [figure(x, y) for figure in make_shapes.FIGURES.values()]
    for first, mask in enumerate(masks):
        for other in masks[:first]:
            assert (mask ^ other).sum() > 0.15 * (mask | other).sum()


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
