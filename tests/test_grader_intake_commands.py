import dataclasses
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.intake.commands import parse_command
from harness.canonical_setup import Numerics
from harness.data import DATASETS
from harness.run.settings import GuardrailMode, RunSettings

START = "python -m harness.trainer --seed 42 --break huge_lr --dataset digits"

counts = st.none() | st.integers(1, 1000)
all_settings = st.builds(
    RunSettings,
    seed=st.integers(0, 2**32 - 1),
    dataset=st.sampled_from(sorted(DATASETS)),
    device=st.sampled_from(["cpu", "cuda"]),
    numerics=st.sampled_from(get_args(Numerics)),
    epochs=counts,
    batch_size=st.none() | st.integers(1, 65536),
    max_steps=counts,
    overfit_batch=counts,
    disable_augment=st.booleans(),
    disable_dropout=st.booleans(),
    disable_amp=st.booleans(),
    verify=st.booleans(),
    clip_norm=st.none() | st.floats(0, 1e6, exclude_min=True, allow_subnormal=True),
    guardrails=st.sampled_from(get_args(GuardrailMode)),
)


@given(all_settings, st.sampled_from([None, "experiment.py"]))
def test_what_the_harness_writes_is_read_back(settings: RunSettings, script: str | None) -> None:
    assert parse_command(settings.command("huge_lr", script), "huge_lr", script) == settings


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(RunSettings)])
def test_every_setting_has_its_option(field: str) -> None:
    # One that is added to the harness and forgotten here would be refused in every submission.
    changed = {
        "seed": 7, "dataset": "mnist", "device": "cuda", "numerics": "native", "clip_norm": 0.5, "guardrails": "off"
    }.get(field)  # fmt: skip
    default = {entry.name: entry.default for entry in dataclasses.fields(RunSettings)}[field]
    value = changed if changed is not None else True if default is False else 3
    settings = RunSettings(**{"seed": 42, "dataset": "digits", field: value})  # type: ignore[arg-type]
    assert parse_command(settings.command("huge_lr"), "huge_lr", None) == settings


NOT_OURS = "The command is not one that the harness writes for this exercise."


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (f"{START} --epochs 1001", "The command has epochs 1001, not 1 to 1000."),
        (f"{START} --epochs 0", "The command has epochs 0, not 1 to 1000."),
        (f"{START} --batch 65537", "The command has batch size 65537, not 1 to 65536."),
        (f"{START} --clip-norm nan", "The command has clip norm nan, not 1 to 1e+06."),
        ("x" * 5000, "The command is too long for one that the harness writes."),
        *(
            (f"{START} {more}", NOT_OURS)
            for more in (
                "--epochs 1_0", "--epochs ٣", "--epochs 03", "--epochs", "--epochs 3 --epochs 4", "--verify --verify",
                "--epochs=3", "--seed 42", "--device tpu", "--guardrails none", "--out /etc", "--resume",
                "--script x.py", "; rm -rf /", "'", "\x1b[31m", "--clip-norm 1", "--device cpu", "",
            )
        ),
        *(
            (START.replace(find, replace), NOT_OURS)
            for find, replace in (
                ("python ", "python3 "), ("harness.trainer", "os"), ("huge_lr", "loss_sum"), ("--break huge_lr", ""),
            )
        ),
        *((START.replace(part, ""), r"The command .*\.") for part in ("--seed 42", "--dataset digits", START)),
        *((START.replace("42", seed), r"The command .*\.") for seed in ("-1", str(2**32))),
    ],
)  # fmt: skip
def test_what_the_harness_does_not_write_is_refused(command: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"^The command") as caught:
        parse_command(command, "huge_lr", None)
    assert re.fullmatch(says, str(caught.value)) or str(caught.value) == says
