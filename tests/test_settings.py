import dataclasses
import json
import shlex
from typing import Any

import pytest

from harness.run.settings import RunJob, RunSettings
from harness.run.trainer_cli import trainer

OPTIONS: dict[str, Any] = {
    "device": "cuda",
    "numerics": "native",
    "epochs": 3,
    "batch_size": 32,
    "max_steps": 7,
    "overfit_batch": 8,
    "disable_augment": True,
    "disable_dropout": True,
    "disable_amp": True,
    "verify": True,
    "clip_norm": 0.5,
    "guardrails": "strict",
}


def parsed(command: str) -> dict[str, Any]:
    """Return what the real command makes of the words of a command line."""
    program, words = command.split(" --", 1)
    assert program == "python -m harness.trainer"
    return trainer.make_context("trainer", shlex.split("--" + words)).params


def settings_of(parameters: dict[str, Any]) -> RunSettings:
    fields = {field.name for field in dataclasses.fields(RunSettings)}
    given = {name: value for name, value in parameters.items() if name in fields}
    return RunSettings(**{**given, "device": given["device"] or "cpu"})


def test_the_table_of_options_is_complete() -> None:
    names = [field.name for field in dataclasses.fields(RunSettings)]
    assert names == ["seed", "dataset", *OPTIONS]


def test_a_plain_run_has_a_short_command() -> None:
    expected = "python -m harness.trainer --seed 42 --break huge_lr --dataset digits"
    assert RunSettings(seed=42, dataset="digits").command("huge_lr") == expected


@pytest.mark.parametrize("name", OPTIONS)
def test_the_command_makes_the_same_run_for_each_option(name: str) -> None:
    settings = RunSettings(seed=7, dataset="mnist", **{name: OPTIONS[name]})
    assert settings != RunSettings(seed=7, dataset="mnist")
    parameters = parsed(settings.command("loss_sum"))
    assert settings_of(parameters) == settings
    assert parameters["break_id"] == "loss_sum"


def test_the_command_makes_the_same_run_for_all_options_and_a_script() -> None:
    settings = RunSettings(seed=0, dataset="cifar10", **OPTIONS)
    parameters = parsed(settings.command("none", "experiment.py"))
    assert settings_of(parameters) == settings
    assert str(parameters["script"]) == "experiment.py"


def job(**fields: Any) -> RunJob:
    return RunJob(
        **{
            "settings": RunSettings(seed=42, dataset="digits", **OPTIONS),
            "recipe": "huge_lr",
            "experiment": "digits_mlp",
            "title": "A title, with ünïcode\u2028and \"quotes\"",
            "run": "broken",
            "source": "EPOCHS = 3\n\n# line\r\n\tend\u2028\n",
            "folder": "runs/broken",
            **fields,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {
            "source_path": "work/a b.py",
            "cache": "/data",
            "resume": True,
            "compare_with": "runs/x",
            "run": "fixed",
        },
    ],
)
def test_a_job_travels_on_one_line_and_arrives_whole(fields: dict[str, Any]) -> None:
    sent = job(**fields)
    line = sent.to_json()
    assert len(line.splitlines()) == 1
    assert line.isascii()
    assert RunJob.from_json(line + "\n") == sent


@pytest.mark.parametrize("name", ["seeds", "epoch"])
def test_a_job_with_an_unknown_setting_is_a_fault(name: str) -> None:
    fields = json.loads(job().to_json())
    fields["settings"][name] = 1
    with pytest.raises(TypeError, match=name):
        RunJob.from_json(json.dumps(fields))


def test_settings_cannot_be_changed() -> None:
    settings = RunSettings(seed=1, dataset="digits")
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 2  # type: ignore[misc]
