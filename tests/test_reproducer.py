"""`harness reproduce` packs the smallest run that shows the symptom, and the tarball runs without the harness."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from helpers.commands import command_environment, mistake, succeed

from harness.student.reproducer import fewest

ALONE = """
import runpy, sys
sys.modules["harness"] = None  # an import of the installed harness fails
sys.argv = ["reproduce.py"]
runpy.run_path("reproduce.py", run_name="__main__")
"""


@pytest.mark.parametrize("least", [1, 2, 3, 7, 8, 9, 99, 100])
def test_the_search_finds_the_fewest_with_few_trials(least: int) -> None:
    tried: list[int] = []

    def shows(count: int) -> bool:
        tried.append(count)
        return count >= least

    assert fewest(100, shows) == least
    assert len(tried) <= 14


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "most"), [("huge_lr", 20)])
def test_the_tarball_shows_the_symptom_in_an_empty_folder(recipe: str, most: int, tmp_path: Path) -> None:
    succeed("exercise", recipe, cwd=tmp_path)
    said = succeed("reproduce", recipe, "--out", "found.tgz", cwd=tmp_path)
    with tarfile.open(tmp_path / "found.tgz") as tar:
        tar.extractall(tmp_path / "empty", filter="data")
    folder = tmp_path / "empty/found"
    config = json.loads((folder / "config.json").read_text())
    assert config["steps"] <= most and f"in {config['steps']} of {config['whole_steps']} steps" in said
    assert config["examples"] < config["whole_examples"]
    assert {"torch", "numpy", "python"} <= config["machine"]["versions"].keys()
    readme = (folder / "README.md").read_text()
    assert config["symptoms"][0] in readme and "Nothing was tried yet" in readme
    environment = {**command_environment(), **config["environment"]}
    command = [sys.executable, "-P", "-c", ALONE]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\nstep ") + 1 == config["steps"] and "differ" not in done.stdout
    # A shell sets none of these variables: the script starts itself again. Another fault gives other losses.
    source = folder / "experiment.py"
    source.write_text(source.read_text().replace("lr=10", "lr=9").replace("lr=10.0", "lr=9.0"))
    bare = {name: value for name, value in os.environ.items() if name not in config["environment"]}
    done = subprocess.run(
        [sys.executable, "reproduce.py"], cwd=folder, env=bare, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "losses differ" in done.stdout


@pytest.mark.slow
def test_a_run_without_symptoms_is_refused(tmp_path: Path) -> None:
    succeed("exercise", "huge_lr", cwd=tmp_path)
    path = tmp_path / "work/huge_lr/experiment.py"
    path.write_text(path.read_text().replace("lr=10.0", "lr=0.1"))
    assert "shows no symptom any more" in mistake("reproduce", "huge_lr", cwd=tmp_path)
    assert not (tmp_path / "reproduce_huge_lr.tgz").exists()
