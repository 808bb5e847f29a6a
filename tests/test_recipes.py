"""A sample of real recipes: broken runs show all symptoms, healthy runs none, and both repeat byte for byte.

`grader selfcheck` does this for every recipe with several seeds.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.recorded_logs import LOGS, log_bytes
from helpers.sampling import RECIPES, by_hash

from harness.canonical_setup import run_environment
from harness.recipes.recipe import Recipe
from harness.run.metrics_log import read_metrics_log
from harness.run.symptoms import judge_symptom

SAMPLE = sorted(RECIPES, key=by_hash)[:3]
FILES = ("metrics.log", "checkpoint.pt", "best.pt", "inputs.json")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the sample in one process."""
    folder = tmp_path_factory.mktemp("recipes")
    child = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-m",
            "helpers.mini_experiments",
            str(folder),
            *(recipe.id for recipe in SAMPLE),
        ],
        env={**run_environment("portable"), "PYTHONPATH": str(Path(__file__).parent)},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return folder


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_white_space_does_not_show_where_something_was_cut(recipe: Recipe) -> None:
    source = recipe.broken_source()
    assert not re.search(r"\n\n\n\n|[ \t]\n|\n\n +\n|\A\n|\n\n\Z", source)
    # Only top-level definitions are separated by two blank lines.
    assert not re.search(r"\n\n\n[ )\]}]", source)


@pytest.mark.parametrize("recipe", SAMPLE, ids=lambda recipe: recipe.id)
def test_a_recipe_is_proven_both_ways(recipe: Recipe, real: Path) -> None:
    own = recipe.on(recipe.dataset)
    broken, healthy = (read_metrics_log(real / name / "metrics.log") for name in (recipe.id, recipe.experiment))
    for symptom in own.symptoms:
        assert judge_symptom(broken, symptom).present, symptom.says
        found = judge_symptom(healthy, symptom)
        assert found.value is not None, f"{symptom.signal} is not in the log"
        assert not found.present, symptom.says
    for observation in own.observations:
        assert judge_symptom(broken, observation).present, observation.says
        assert judge_symptom(healthy, observation).present, observation.says


@pytest.mark.parametrize("recipe", SAMPLE, ids=lambda recipe: recipe.id)
def test_its_runs_repeat_to_the_byte_and_differ_from_each_other(recipe: Recipe, real: Path) -> None:
    for name in (recipe.id, recipe.experiment):
        again = real / f"{name}-again"
        for file in FILES if again.exists() else ():
            assert (real / name / file).read_bytes() == (again / file).read_bytes()
        # The recorded logs, which other tests use, are the logs of these runs.
        if (LOGS / f"{name}.log.gz").exists():
            assert log_bytes(name) == (real / name / "metrics.log").read_bytes()
    # Without this line, two equal runs could mean that both trained nothing.
    checkpoints = [(real / name / "checkpoint.pt").read_bytes() for name in (recipe.id, recipe.experiment)]
    assert checkpoints[0] != checkpoints[1]
