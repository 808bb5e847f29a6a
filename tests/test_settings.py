import dataclasses
import json
import shlex
from typing import Any

import pytest

from harness.run.settings import RunJob, RunSettings
from harness.student.trainer_command import trainer

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
    "overfit_examples": 100,
    "keep_last": True,
}


def test_the_table_of_options_is_complete() -> None:
    names = [field.name for field in dataclasses.fields(RunSettings)]
    assert names == ["seed", "dataset", *OPTIONS]


@pytest.mark.parametrize("names", [[], *([name] for name in OPTIONS), list(OPTIONS)])
def test_the_command_of_settings_makes_the_same_run(names: list[str]) -> None:
    settings = RunSettings(seed=7, dataset="mnist", **{name: OPTIONS[name] for name in names})
    command = settings.command("loss_sum", "experiment.py" if names else None)
    if not names:
        assert command == "python -m harness.trainer --seed 7 --break loss_sum --dataset mnist"
    parsed = trainer.make_context("trainer", shlex.split(command)[3:]).params
    given = {field.name: parsed[field.name] for field in dataclasses.fields(RunSettings)}
    assert RunSettings(**{**given, "device": given["device"] or "cpu"}) == settings
    assert (parsed["break_id"], str(parsed["script"])) == ("loss_sum", "experiment.py" if names else "None")


def test_a_job_travels_on_one_line_and_arrives_whole() -> None:
    source, title = "EPOCHS = 3\n\n# line\r\n\tend\u2028\n", 'A title, with ünïcode\u2028and "quotes"'
    settings = RunSettings(seed=42, dataset="digits", **OPTIONS)
    sent = RunJob(settings, "huge_lr", "digits_mlp", title, "fixed", source, "runs/x", "work/a b.py", resume=True)
    line = sent.to_json()
    assert line.isascii() and len(line.splitlines()) == 1
    assert RunJob.from_json(line + "\n") == sent
    fields = json.loads(line)
    fields["settings"]["seeds"] = 1
    with pytest.raises(TypeError, match="seeds"):
        RunJob.from_json(json.dumps(fields))
