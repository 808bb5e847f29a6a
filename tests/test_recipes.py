"""The real recipes, on their own data in portable numerics: broken shows all of it, healthy none of it."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_logs import log_bytes
from runs import RealRuns

from harness.canonical_setup import run_environment
from harness.recipe import Recipe, load_recipe, recipe_ids
from harness.symptoms import judge_symptom

RECIPES = recipe_ids()
MLP_RECIPES = [name for name in RECIPES if load_recipe(name).experiment == "digits_mlp"]
RUNS = Path(__file__).parent / "runs.py"


def own_data(name: str) -> Recipe:
    """Return a recipe with what it declares for its default data set."""
    recipe = load_recipe(name)
    return recipe.on(recipe.dataset)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRuns]:
    """Train all of them, in one process for each healthy experiment, at the same time."""
    folder = tmp_path_factory.mktemp("recipes")
    experiments: dict[str, list[str]] = {}
    for name in RECIPES:
        experiments.setdefault(load_recipe(name).experiment, []).append(name)
    children = {
        experiment: subprocess.Popen(
            [sys.executable, "-W", "error", str(RUNS), str(folder), *names],
            env=run_environment("portable"),
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        )
        for experiment, names in experiments.items()
    }
    for experiment, child in children.items():
        errors = child.communicate()[1]
        assert child.returncode == 0, f"{experiment}: {errors}"
    yield RealRuns(folder)


@pytest.mark.parametrize("name", RECIPES)
def test_the_broken_run_shows_every_symptom_and_observation(name: str, real: RealRuns) -> None:
    recipe, records = own_data(name), real.records(name)
    for symptom in (*recipe.symptoms, *recipe.observations):
        result = judge_symptom(records, symptom)
        assert result.present, f"{symptom.says}: {result.value}"


@pytest.mark.parametrize("name", RECIPES)
def test_the_healthy_run_shows_no_symptom_and_every_observation(name: str, real: RealRuns) -> None:
    recipe = own_data(name)
    records = real.records(recipe.experiment)
    for symptom in recipe.symptoms:
        result = judge_symptom(records, symptom)
        assert result.value is not None, f"{symptom.signal} is not in the log"
        assert not result.present, f"{symptom.says}: {result.value}"
    for observation in recipe.observations:
        result = judge_symptom(records, observation)
        assert result.present, f"{observation.says}: {result.value}"


@pytest.mark.parametrize("name", [*MLP_RECIPES, "digits_mlp"])
@pytest.mark.parametrize("file", ["metrics.log", "checkpoint.pt", "best.pt", "inputs.json"])
def test_a_run_repeats_to_the_byte(name: str, file: str, real: RealRuns) -> None:
    first = (real.folder / name / file).read_bytes()
    assert first == (real.folder / f"{name}-again" / file).read_bytes()


@pytest.mark.parametrize("name", [*RECIPES, "digits_mlp", "shapes_cnn", "digits_heat"])
def test_the_logs_by_which_explanations_are_tested_are_those_of_these_runs(name: str, real: RealRuns) -> None:
    assert log_bytes(name) == (real.folder / name / "metrics.log").read_bytes()


def test_runs_of_different_recipes_differ(real: RealRuns) -> None:
    # Without this, two equal runs could mean that nothing was trained.
    checkpoints = {(real.folder / name / "checkpoint.pt").read_bytes() for name in [*RECIPES, "digits_mlp"]}
    assert len(checkpoints) == len(RECIPES) + 1


def test_healthy_runs_land_where_they_should(real: RealRuns) -> None:
    mlp, cnn = (real.records(name)[-1]["val_accuracy"] for name in ("digits_mlp", "shapes_cnn"))
    assert mlp > 0.9
    assert 0.8 < cnn < 0.97
    heat = real.records("digits_heat")[-1]
    assert heat["val_accuracy"] is None
    assert real.records("amp_no_scaling")[-1]["val_loss"] > 1.5 * heat["val_loss"]


def test_a_summed_loss_is_the_batch_size_times_the_mean(real: RealRuns) -> None:
    summed, mean = (real.records(name)[0] for name in ("loss_sum", "digits_mlp"))
    assert summed["loss"] == pytest.approx(64 * mean["loss"], rel=1e-6)
    assert summed["grad_norm"] == pytest.approx(64 * mean["grad_norm"], rel=1e-5)
