"""Guardrails end a run in strict mode before the weights change, and keep the first step with a non-finite value."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from helpers.commands import TRAINER, mistake, run_command
from helpers.mini_experiments import AMP, AMP_SGD, CHANCE, MINI, edited, load, mini_data, train_step

from harness.run.guardrails import GuardrailStop
from harness.run.metrics_log import batch_records, read_metrics_log
from harness.run.settings import GuardrailMode, GuardrailPolicy, OptOut, RunSettings
from harness.run.training import TrainingRun, train

pytestmark = pytest.mark.usefixtures("torch_as_found")

COUNT = "CALLS = []\n\n\ndef train_step("
# A loss of NaN at step 7, from a single bad example.
LATE_NAN = edited(
    MINI,
    ("def train_step(", COUNT),
    (
        "    loss = compute_loss(model(inputs), labels)\n",
        "    CALLS.append(0)\n"
        "    if len(CALLS) == 8:\n"
        "        inputs = inputs.clone()\n"
        "        inputs[3] = float('nan')\n"
        "    loss = compute_loss(model(inputs), labels)\n",
    ),
)
HUGE_STEP = edited(MINI, ("lr=0.05", "lr=50.0"))
NO_GRADIENT = train_step(
    "    optimizer.zero_grad()\n    loss = compute_loss(model(inputs), labels)\n    optimizer.step()\n"
)
SWALLOWED = train_step(
    "    optimizer.zero_grad()\n"
    "    loss = compute_loss(model(inputs), labels) * float('nan')\n"
    "    loss.backward()\n"
    "    try:\n"
    "        optimizer.step()\n"
    "    except Exception:\n"
    "        pass\n"
)


def policy(mode: GuardrailMode, *allowed: str, **options: Any) -> GuardrailPolicy:
    return GuardrailPolicy(mode, allowed=tuple(OptOut(kind, "a reason", "ada") for kind in allowed), **options)


def guarded(folder: Path, source: str, found: GuardrailPolicy, **options: Any) -> TrainingRun:
    settings = RunSettings(**{"seed": 1, "dataset": "digits", **options})
    return train(load(folder, source), mini_data(), settings, folder, policy=found, instruments=True)


def bad_steps(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.badstep"))


@pytest.mark.parametrize("source", [MINI, CHANCE, AMP], ids=["mlp", "batch norm and dropout", "scaler"])
def test_the_mode_changes_no_byte_of_a_run_without_findings(source: str, tmp_path: Path) -> None:
    modes: tuple[GuardrailMode, ...] = ("strict", "warn", "off")
    files = []
    for mode in modes:
        guarded(tmp_path / mode, source, policy(mode))
        files.append([(tmp_path / mode / name).read_bytes() for name in ("metrics.log", "checkpoint.pt", "best.pt")])
        assert bad_steps(tmp_path / mode) == []
    assert files[0] == files[1] == files[2]


def test_a_strict_run_ends_before_the_weights_become_nan(tmp_path: Path) -> None:
    with pytest.raises(GuardrailStop, match=r"ended the run at step 7, .*: the loss is nan\. .*step-7\.badstep\."):
        guarded(tmp_path, LATE_NAN, policy("strict"))
    steps = [record["step"] for record in batch_records(read_metrics_log(tmp_path / "metrics.log"))]
    assert steps == list(range(7))
    (path,) = bad_steps(tmp_path)
    state = torch.load(path, weights_only=True)
    (weights,) = state["model"]
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert state["optimizer"]["state"] and (state["step"], state["message"]) == (7, "the loss is nan")
    assert [one["name"] for one in state["gradients"]] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert state["gradients"][0]["non-finite"].startswith("576 of 576 entries")
    # The step can be repeated, and the quantiles of the finite activations point to the bad example.
    inputs, labels = state["batch"]
    model = load(tmp_path).build_model()
    model.load_state_dict(weights)
    assert F.cross_entropy(model(inputs), labels).isfinite()  # the experiment spoils a copy of the batch
    assert "16 of 128 entries are not finite, the first at (3, 0)" in state["activation_quantiles"]["1"]["non-finite"]
    assert list(state["activation_quantiles"]["3"])[:5] == ["1", "10", "50", "90", "99"]


def test_by_default_a_run_goes_on_but_keeps_its_first_bad_step(tmp_path: Path) -> None:
    run = guarded(tmp_path, LATE_NAN, policy("warn"))
    assert run.steps == run.position["step"]
    assert [(one.step, one.kind) for one in run.findings] == [(7, "loss")]
    assert [path.name for path in bad_steps(tmp_path)] == ["step-7.badstep"]


def test_without_instruments_a_run_leaves_no_further_file(tmp_path: Path) -> None:
    experiment = load(tmp_path, LATE_NAN)
    train(experiment, mini_data(), RunSettings(seed=1, dataset="digits"), tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".py", ".log", ".pt", ".json"}


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        (NO_GRADIENT, "gradient", "no parameter has a gradient"),
        (HUGE_STEP, "gradient-growth", "times the first"),
        (SWALLOWED, "loss", "the loss is nan"),
        (edited(AMP, ("labels)\n    scaler.scale", "labels) * float('nan')\n    scaler.scale")), "loss", "nan"),
    ],
    ids=["no gradient", "growth", "swallowed", "every step skipped by the scaler"],
)  # fmt: skip
def test_each_hard_finding_ends_a_strict_run_unless_it_is_allowed(
    source: str, kind: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(GuardrailStop, match=f"{words}.*--allow {kind} "):
        guarded(tmp_path / "strict", source, policy("strict"))
    kinds = {"loss": ("loss", "logits", "gradient")}.get(kind, (kind, "gradient-norm", "gradient"))
    run = guarded(tmp_path / "allowed", source, policy("strict", *kinds))
    assert run.position["step"] == run.steps
    assert not {one.kind for one in run.findings} & set(kinds)


def test_the_bound_of_the_gradient_norm_can_be_set(tmp_path: Path) -> None:
    with pytest.raises(GuardrailStop, match=r"at step 0, .*, above the bound 0\.001"):
        guarded(tmp_path, MINI, policy("strict", gradient_bound=0.001))


@pytest.mark.parametrize("source", [AMP, AMP_SGD], ids=["fused, which skips its step itself", "not called"])
def test_a_step_that_a_scaler_skips_does_not_end_a_strict_run(source: str, tmp_path: Path) -> None:
    run = guarded(tmp_path, source.replace("init_scale=256.0", "init_scale=2.0**24"), policy("strict"))
    norms = [record["grad_norm"] for record in batch_records(read_metrics_log(tmp_path / "metrics.log"))]
    assert not all(map(math.isfinite, norms)) and run.position["step"] == run.steps


@pytest.mark.parametrize(("batch_size", "expected"), [(8, []), (4, ["batch-norm-small"])])
def test_batch_norm_on_few_examples_is_a_soft_finding(batch_size: int, expected: list[str], tmp_path: Path) -> None:
    run = guarded(tmp_path / "found", CHANCE, policy("strict"), batch_size=batch_size)
    assert [one.kind for one in run.findings] == expected
    run = guarded(tmp_path / "allowed", CHANCE, policy("warn", "batch-norm-small"), batch_size=batch_size)
    assert run.findings == []


def test_frozen_batch_norm_may_have_few_examples(tmp_path: Path) -> None:
    head = "def train_step(model, optimizer, inputs, labels):\n"
    frozen = edited(CHANCE, (head, f"{head}    model[2].eval()\n"))
    assert guarded(tmp_path, frozen, policy("warn"), batch_size=4).findings == []


@pytest.mark.slow
def test_the_command_stops_and_an_opt_out_is_in_the_meta(tmp_path: Path) -> None:
    words = ("--break", "nan_blank_image", "--guardrails", "strict")
    said = mistake(*words, cwd=tmp_path, program=TRAINER)
    assert "before the optimizer changed the weights: the loss is nan." in said and ".badstep" in said
    assert "There is no guardrail 'lost'" in mistake(*words, "--allow", "lost", "x", cwd=tmp_path, program=TRAINER)
    assert "has no reason" in mistake(*words, "--allow", "loss", " ", cwd=tmp_path, program=TRAINER)
    reasons = [word for kind in ("loss", "logits", "gradient") for word in ("--allow", kind, "to see what follows")]
    assert run_command(*words, *reasons, "--out", "run", cwd=tmp_path, program=TRAINER).returncode == 0
    meta = json.loads((tmp_path / "run/checkpoint.pt.meta.json").read_text())
    assert meta["guardrails"]["mode"] == "strict"
    assert [(one["kind"], one["reason"]) for one in meta["guardrails"]["allowed"]] == [
        (kind, "to see what follows") for kind in ("loss", "logits", "gradient")
    ]
    assert all(one["by"] for one in meta["guardrails"]["allowed"])
