import math

import pytest

from benchmarks.bands import PAIRS, VARIANTS, band_of, entry, variant_sources
from grader.score.bands import load_band
from harness.recipe import experiment_source

ACCURACY = [0.95, 0.90, 0.94, 0.93]


def test_a_band_is_as_wide_as_the_reference_over_its_seeds() -> None:
    band = band_of(ACCURACY, {"lr 0.05": [0.94, 0.91]}, by_accuracy=True)
    assert band.farthest == "seeds"
    assert band.distance == pytest.approx(0.05)


def test_a_variant_that_ends_farther_widens_it_and_is_named() -> None:
    variants = {"near": [0.95, 0.89], "far": [0.95, 0.823], "better": [0.99, 0.99]}
    band = band_of(ACCURACY, variants, by_accuracy=True)
    assert band.farthest == "far"
    assert band.distance == pytest.approx(0.077)
    assert band.limit == pytest.approx(0.08)


def test_a_loss_is_so_many_times_the_reference_of_the_same_seed() -> None:
    band = band_of([1e-8, 2e-8], {"AdamW": [3e-8, 5e-8]}, by_accuracy=False)
    assert band.farthest == "AdamW"
    assert band.distance == pytest.approx(3.0)
    assert band_of([1e-8, 2e-8], {"AdamW": [1e-8, 3e-8]}, by_accuracy=False).farthest == "seeds"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("by_accuracy", [True, False])
def test_a_figure_that_is_not_finite_is_never_passed_over(bad: float, by_accuracy: bool) -> None:
    with pytest.raises(ValueError, match="lr 2 ended with"):
        band_of(ACCURACY, {"lr 0.05": [0.94], "lr 2": [0.94, bad]}, by_accuracy=by_accuracy)
    with pytest.raises(ValueError, match="the reference ended with"):
        band_of([*ACCURACY, bad], {}, by_accuracy=by_accuracy)


def test_an_entry_says_what_it_rests_on() -> None:
    band = band_of(ACCURACY, {"far": [0.823]}, by_accuracy=True)
    assert entry("digits_mlp", "digits", band) == (
        "# 4 seeds; farthest: far, 0.127.\n"
        '[[band]]\nexperiment = "digits_mlp"\ndataset = "digits"\naccuracy_below = 0.13\nreference = [0.9, 0.95]\n'
    )
    assert entry("digits_heat", "digits", band_of([1.0, 2.0], {}, by_accuracy=False)).endswith(
        "loss_times = 2.00\nreference = [1, 2]\n"
    )


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_another_experiment(name: str) -> None:
    sources = variant_sources(name)
    assert len(sources) == len(VARIANTS[name])
    assert len({experiment_source(name), *sources.values()}) == len(sources) + 1


def test_every_pair_has_its_band_in_the_file() -> None:
    for experiment, dataset in PAIRS:
        assert load_band(experiment, dataset).dataset == dataset
