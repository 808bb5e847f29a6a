"""Subjects for the tests of the checks: miniature experiments, and the real recipes on their own data."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.checks import Finding, make_check
from harness.checks.core.subject import Subject
from harness.cli import cli
from harness.data.datasets import Dataset, Split
from harness.data.loading import load_dataset
from harness.recipes.catalogue import load_recipe
from harness.run.experiment import TensorSplit
from harness.run.settings import RunSettings
from helpers.mini_experiments import MINI, mini_data

load = cache(load_dataset)


def mini_subject(source: str = MINI, *, seed: int = 1) -> Subject:
    """Return a miniature experiment on 40 images of 6x6."""
    data = mini_data()

    def split(part: TensorSplit) -> Split:
        return Split(part.inputs.numpy(), part.labels.numpy())

    dataset = Dataset.of("digits", split(data.train), split(data.validation))
    return Subject(Path("experiment.py"), source, RunSettings(seed=seed, dataset="digits"), dataset)


def real_subject(recipe_id: str, *, healthy: bool = False, seed: int = 42) -> Subject:
    """Return a recipe's experiment, broken or healthy, on the recipe's own data."""
    recipe = load_recipe(recipe_id)
    return source_subject(recipe.healthy_source() if healthy else recipe.broken_source(), recipe.dataset, seed)


def source_subject(source: str, dataset: str = "digits", seed: int = 42) -> Subject:
    """Return any experiment on one of the embedded data sets."""
    return Subject(Path("experiment.py"), source, RunSettings(seed=seed, dataset=dataset), load(dataset))


def measure_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the commands measure in this process, which has already imported torch. A new process takes seconds.

    Values may then differ from a real command in their last digits. `test_check_commands.py` starts some real commands.
    """

    def start(
        subjects: Sequence[tuple[str, RunSettings]], names: Sequence[str], source_path: Path | None, **_: Any
    ) -> list[dict[str, Finding]]:
        ((source, settings),) = subjects
        path = Path("experiment.py") if source_path is None else source_path.resolve()
        subject = Subject(path, source, settings, load(settings.dataset))
        found = {name: make_check(subject, name).to_json() for name in names}
        return [{name: Finding.from_json(finding) for name, finding in found.items()}]

    monkeypatch.setattr("harness.checks.core.child.start", start)


def say(*words: str) -> str:
    """Run a command in this process, and return its output."""
    done = CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    assert done.exit_code == 0, done.output
    return done.output
