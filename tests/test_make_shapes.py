from pathlib import Path

import numpy as np
import pytest

from harness.data.embedded.figures import FIGURES
from harness.data.embedded.make_shapes import SEED, SIZES, draw_split
from harness.data.embedded_data import STUDENTS_FOLDER, read_embedded_split

GRADERS_FOLDER = Path(__file__).parents[1] / "grader" / "replay" / "heldout"


@pytest.mark.parametrize("name", SIZES)
def test_the_script_draws_the_stored_arrays_again(name: str) -> None:
    images, labels = draw_split(SIZES[name], SEED + list(SIZES).index(name))
    stored = read_embedded_split("shapes", name, GRADERS_FOLDER if name == "heldout" else STUDENTS_FOLDER)
    assert (stored.images == images).all()
    assert (stored.labels == labels).all()


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fits_its_square_and_is_its_own_mirror_image(name: str) -> None:
    side = np.linspace(-1.5, 1.5, 300)  # an even number: no point lies on an outline's own axis
    x, y = np.meshgrid(side, side)
    mask = FIGURES[name](x, y)
    assert not mask[(np.abs(x) > 1) | (np.abs(y) > 1)].any()
    assert 0.07 < mask.mean() < 0.3
    assert np.mean(mask != mask[:, ::-1]) < 0.001


def test_figures_differ_from_each_other() -> None:
    x, y = np.meshgrid(np.linspace(-1, 1, 101), np.linspace(-1, 1, 101))
    masks = [figure(x, y) for figure in FIGURES.values()]
    for first, mask in enumerate(masks):
        for other in masks[:first]:
            assert (mask ^ other).sum() > 0.15 * (mask | other).sum()


def test_pixels_have_sixteen_levels() -> None:
    images = read_embedded_split("shapes", "train").images
    assert np.unique(images).tolist() == list(range(0, 256, 17))
