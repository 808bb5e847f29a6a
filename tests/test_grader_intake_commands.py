import dataclasses
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


@given(st.text(max_size=200))
def test_any_other_text_is_refused_with_a_sentence(text: str) -> None:
    for command in (text, f"{START} {text}"):
        try:
            parse_command(command, "huge_lr", None)
        except ValueError as error:
            assert str(error).startswith("The command ")
            assert str(error).endswith(".")
            assert str(error).isprintable()
        else:
            assert command.split()[:9] == START.split()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("--epochs 0", "The command has --epochs 0, which is not a whole number from 1 to 1000."),
        ("--epochs 1001", "The command has --epochs 1001, which is not a whole number from 1 to 1000."),
        ("--epochs 1_0", "The command has --epochs 1_0, which is not a whole number from 1 to 1000."),
        ("--epochs ٣", "The command has --epochs ٣, which is not a whole number from 1 to 1000."),
        ("--epochs 03", "The command has --epochs 03, which is not a whole number from 1 to 1000."),
        ("--epochs", "The command ends after --epochs."),
        ("--epochs 3 --epochs 4", "The command has --epochs twice."),
        ("--verify --verify", "The command has --verify twice."),
        ("--epochs=3", "The command has --epochs=3, which the harness does not write."),
        ("--seed 42", "The command has --seed twice."),
        ("--batch 65537", "The command has --batch 65537, which is not a whole number from 1 to 65536."),
        (
            "--clip-norm nan",
            "The command has --clip-norm nan, which is not a number above 0 and up to 1000000.",
        ),
        (
            "--clip-norm inf",
            "The command has --clip-norm inf, which is not a number above 0 and up to 1000000.",
        ),
        ("--clip-norm 0", "The command has --clip-norm 0, which is not a number above 0 and up to 1000000."),
        ("--device tpu", "The command has --device tpu, which is not one of cpu, cuda."),
        ("--guardrails none", "The command has --guardrails none, which is not one of off, warn, strict."),
        ("--out /etc", "The command has --out, which the harness does not write."),
        ("--resume", "The command has --resume, which the harness does not write."),
        ("--script x.py", "The command should have no --script."),
        ("; rm -rf /", "The command has ;, which the harness does not write."),
        ("'", "The command has an unclosed quotation mark."),
        ("x" * 5000, "The command is too long for one that the harness writes."),
        ("\x1b[31m", "The command has \\x1b[31m, which the harness does not write."),
    ],
)
def test_what_the_harness_does_not_write_is_refused(more: str, says: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        parse_command(f"{START} {more}", "huge_lr", None)
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "command",
    [
        START.replace("python ", "python3 "),
        START.replace("harness.trainer", "os"),
        START.replace("--break huge_lr", "--break loss_sum"),
        START.replace("--break huge_lr", ""),
        START.replace("--seed 42", ""),
        START.replace("--dataset digits", ""),
        START.replace("digits", "imagenet"),
        START.replace("42", str(2**32)),
        START.replace("42", "-1"),
        "",
    ],
)
def test_a_command_without_its_parts_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match=r"^The command .*\.$"):
        parse_command(command, "huge_lr", None)


def test_a_fixed_run_has_its_script() -> None:
    with pytest.raises(ValueError, match=r"should have --script experiment\.py"):
        parse_command(START, "huge_lr", "experiment.py")
    with pytest.raises(ValueError, match=r"should have --script experiment\.py"):
        parse_command(f"{START} --script other.py", "huge_lr", "experiment.py")
