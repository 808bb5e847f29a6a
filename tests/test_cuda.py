"""Runs on a CUDA GPU: deterministic, resumable, with their own platform class."""

import json
from pathlib import Path

import pytest
import torch

from harness.recipes.form import is_script
from harness.recipes.recipe import experiment_names, experiment_source
from harness.run.options import default_dataset
from harness.run.settings import RunSettings
from harness.student.runs import launch, single_run_job

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA card that torch can use")


def run(experiment: str, folder: Path, **more: object) -> bytes:
    dataset = default_dataset("none", experiment)
    settings = RunSettings(seed=42, dataset=dataset, device="cuda", epochs=2, **more)  # type: ignore[arg-type]
    launch(single_run_job("none", settings, folder, experiment=experiment))
    return (folder / "checkpoint.pt").read_bytes() + (folder / "metrics.log").read_bytes()


@pytest.mark.parametrize("experiment", [name for name in experiment_names() if not is_script(experiment_source(name))])
def test_two_runs_on_one_card_have_the_same_bytes(experiment: str, tmp_path: Path) -> None:
    assert run(experiment, tmp_path / "one") == run(experiment, tmp_path / "two")


def test_a_card_is_a_platform_class_of_its_own(tmp_path: Path) -> None:
    run("digits_mlp", tmp_path / "run")
    meta = json.loads((tmp_path / "run" / "checkpoint.pt.meta.json").read_text())
    assert meta["platform_class"]["device"] == torch.cuda.get_device_name()
    assert meta["platform_class"]["golden"] is None


def test_native_numerics_repeat_too(tmp_path: Path) -> None:
    assert run("shapes_cnn", tmp_path / "one", numerics="native") == run(
        "shapes_cnn", tmp_path / "two", numerics="native"
    )
