import json
import shutil
from pathlib import Path

import pytest
from commands import ROOT, TRAINER, succeed


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the suite in which the recipe huge_lr has the seed 7."""
    folder = tmp_path_factory.mktemp("suite")
    for name in ("harness", "exercises"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    recipe = folder / "exercises" / "huge_lr" / "recipe.toml"
    text = recipe.read_text(encoding="utf-8")
    assert text.count("seed       = 42") == 1
    recipe.write_text(text.replace("seed       = 42", "seed       = 7"), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("words", "seed"),
    [(("--break", "huge_lr"), 7), (("--break", "huge_lr", "--seed", "5"), 5), (("--break", "none"), 42)],
)
def test_a_run_has_the_seed_of_its_recipe(words: tuple[str, ...], seed: int, suite: Path) -> None:
    # Of the two folders called harness, the one in the working folder is imported.
    said = succeed(*words, "--max-steps", "1", "--json", cwd=suite, program=TRAINER)
    assert json.loads(said)["seed"] == seed
    assert (suite / f"run_{words[1]}_{seed}" / "metrics.log").is_file()
