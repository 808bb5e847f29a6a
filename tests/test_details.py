"""`details.log` records clipping, the loss scaler, quantiles and the confusion matrix, and changes no other file."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.mini_experiments import AMP, AMP_SGD, CHANCE, MINI, edited, load, mini_data
from torch import nn

from harness.run.details import Details, confusion_matrix, is_sampled, layers_of_interest
from harness.run.diagnostics import activation_quantiles
from harness.run.settings import RunSettings
from harness.run.training import train

pytestmark = pytest.mark.usefixtures("torch_as_found")

BY_NORM = edited(
    MINI,
    ("import torch\n", "import torch\nfrom torch.nn.utils import clip_grad_norm_\n"),
    ("    loss.backward()\n", "    loss.backward()\n    clip_grad_norm_(model.parameters(), 0.6)\n"),
)
BY_VALUE = edited(
    MINI, ("    loss.backward()\n", "    loss.backward()\n    nn.utils.clip_grad_value_(model.parameters(), 1e-3)\n")
)


def detailed(folder: Path, source: str, **options: Any) -> list[dict[str, Any]]:
    settings = RunSettings(**{"seed": 1, "dataset": "digits", **options})
    train(load(folder, source), mini_data(), settings, folder, instruments=True)
    return lines(folder)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "details.log").read_text().splitlines()]


def batches(folder: Path) -> list[dict[str, Any]]:
    records = map(json.loads, (folder / "metrics.log").read_text().splitlines())
    return [record for record in records if "step" in record]


def test_each_batch_says_what_clipping_did(tmp_path: Path) -> None:
    found = [one for one in detailed(tmp_path, BY_NORM) if "step" in one]
    assert [one["step"] for one in found] == list(range(15))
    assert [one["grad_norm"] for one in found] == [one["grad_norm"] for one in batches(tmp_path)]
    assert {one["clipped"] for one in found} == {True, False}
    for one in found:
        assert one["clipped"] is (one["grad_norm_before_clipping"] > 0.6)
        assert one["grad_norm"] == pytest.approx(min(one["grad_norm_before_clipping"], 0.6), rel=1e-4)


def test_clipping_by_value_and_by_the_option_is_recorded_and_no_clipping_is_null(tmp_path: Path) -> None:
    by_value = detailed(tmp_path / "value", BY_VALUE)[0]
    assert by_value["clipped"] and by_value["grad_norm_before_clipping"] > by_value["grad_norm"]
    by_option = detailed(tmp_path / "option", MINI, clip_norm=0.2)[0]
    assert by_option["clipped"] and by_option["grad_norm"] == pytest.approx(0.2, rel=1e-4)
    plain = detailed(tmp_path / "plain", MINI)[0]
    assert (plain["clipped"], plain["grad_norm_before_clipping"]) == (None, None)


@pytest.mark.parametrize("source", [AMP, AMP_SGD], ids=["fused, which skips its step itself", "not called"])
def test_the_factor_of_the_scaler_and_the_steps_that_it_skips_are_recorded(source: str, tmp_path: Path) -> None:
    found = detailed(tmp_path, source.replace("init_scale=256.0", "init_scale=2.0**24"))
    scales = [one["loss_scale"] for one in found if "step" in one]
    falls = [new < old for old, new in pairwise(scales)]
    assert scales[0] == 2.0**24 and [bool(one["skipped_steps"]) for one in found if "step" in one][:-1] == falls
    assert any(falls) and not all(falls)


def test_quantiles_and_norms_are_those_of_the_network(tmp_path: Path) -> None:
    first = detailed(tmp_path, MINI)[0]
    torch.manual_seed(1)
    experiment = load(tmp_path / "again", MINI)
    model = experiment.build_model()
    (inputs, labels), _ = experiment.load_data(mini_data())
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1))[:8]
    experiment.compute_loss(model(inputs[order]), labels[order]).backward()
    assert first["parameter_norm"] == pytest.approx(math.hypot(*(float(p.detach().norm()) for p in model.parameters())))
    assert first["activation_quantiles"]["3"] == activation_quantiles(model(inputs[order]))
    assert list(first["gradient_quantiles"]) == ["1.weight", "3.weight"]
    gradient = dict(model.named_parameters())["3.weight"].grad
    assert gradient is not None and first["gradient_quantiles"]["3.weight"] == activation_quantiles(gradient)


def test_quantiles_are_close_to_exact_ones_and_ignore_values_that_are_not_finite() -> None:
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
    exact = torch.quantile(values, torch.tensor([0.01, 0.1, 0.5, 0.9, 0.99], dtype=values.dtype))
    assert list(activation_quantiles(values).values()) == pytest.approx(exact.tolist(), abs=0.2)
    assert activation_quantiles(torch.tensor([math.nan, 3.0, math.inf])) == dict.fromkeys(
        ("1", "10", "50", "90", "99"), 3.0
    )
    assert set(activation_quantiles(torch.tensor([math.nan])).values()) == {None}


@pytest.mark.parametrize("source", [MINI, CHANCE, AMP, BY_NORM], ids=["mlp", "chance", "scaler", "clipping"])
def test_details_change_no_other_file(source: str, tmp_path: Path) -> None:
    files = []
    for name, instruments in (("with", True), ("without", False)):
        folder = tmp_path / name
        settings = RunSettings(seed=1, dataset="digits")
        train(load(folder, source), mini_data(), settings, folder, instruments=instruments)
        assert (folder / "details.log").exists() is instruments
        files.append([(folder / name).read_bytes() for name in ("metrics.log", "checkpoint.pt", "best.pt")])
    assert files[0] == files[1]


@pytest.mark.parametrize("at_step", [3, 7, 10])
def test_a_resumed_run_has_the_same_details(at_step: int, tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def progress(step: int, steps: int, loss: float) -> None:
        if step == at_step:
            raise Killed

    detailed(tmp_path / "whole", CHANCE)
    folder, settings = tmp_path / "killed", RunSettings(seed=1, dataset="digits")
    with pytest.raises(Killed):
        train(load(folder, CHANCE), mini_data(), settings, folder, progress=progress, instruments=True)
    train(load(folder, CHANCE), mini_data(), settings, folder, resume=True, instruments=True)
    assert (folder / "details.log").read_bytes() == (tmp_path / "whole/details.log").read_bytes()


def test_the_last_epoch_has_a_confusion_matrix_that_agrees_with_the_accuracy(tmp_path: Path) -> None:
    found = detailed(tmp_path, MINI, epochs=12)[-1]
    counts = torch.tensor(found["confusion"])
    last = json.loads((tmp_path / "metrics.log").read_text().splitlines()[-1])
    assert (found["epoch"], found["classes"]) == (11, list("0123456789"))
    assert counts.sum(dim=1).tolist() == [2] * 10
    assert int(counts.diag().sum()) / 20 == pytest.approx(last["val_accuracy_eval_mode"])


def test_a_regression_and_labels_outside_the_classes_have_no_confusion_matrix() -> None:
    model, inputs = nn.Linear(4, 3), torch.zeros(5, 4)
    assert confusion_matrix(model, inputs, torch.zeros(5, 3)) is None
    assert confusion_matrix(model, inputs, torch.tensor([0, 1, 2, 3, 0])) is None
    assert confusion_matrix(nn.Linear(9, 3), inputs, torch.zeros(5, dtype=torch.int64)) is None
    assert sum(map(sum, confusion_matrix(model, inputs, torch.tensor([0, 1, 2, -100, 0])) or [])) == 4


def test_few_layers_and_steps_are_of_interest() -> None:
    deep = nn.Sequential(*(layer for _ in range(10) for layer in (nn.Linear(2, 2), nn.ReLU())))
    assert list(layers_of_interest(deep)) == ["0", "6", "12", "18"]
    assert [step for step in range(1000) if is_sampled(step)][:3] == [0, 10, 20]
    assert sum(map(is_sampled, range(10_000))) == 50 + 95


def test_hooks_are_removed_after_a_run(tmp_path: Path) -> None:
    before = torch.amp.GradScaler.step, nn.utils.clip_grad._clip_grads_with_norm_
    model = nn.Linear(2, 2)
    details = Details(lambda: 0)
    with details.install(tmp_path, continues=False):
        details.add(model)
        assert torch.amp.GradScaler.step is not before[0]
    assert (torch.amp.GradScaler.step, nn.utils.clip_grad._clip_grads_with_norm_) == before
    assert not model._forward_hooks
