import math
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.mini_experiments import AMP, AMP_SGD, CHANCE, MINI, edited, load, mini_data, mini_run, train_step
from torch import Tensor, nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from harness.run.experiment import HarnessFault
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder, first_layer

pytestmark = pytest.mark.usefixtures("torch_as_found")


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    """Return a layer with these weights."""
    layer = nn.Linear(len(weight[0]), len(weight))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
        layer.bias.copy_(torch.tensor(bias))
    return layer


def set_gradients(model: nn.Module, *gradients: list[Any] | None) -> None:
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = None if gradient is None else torch.tensor(gradient)


# --- figures against a calculation by hand ------------------------------------------------------------------


def stepped(model: nn.Module, *gradients: list[Any] | None) -> Record:
    """Return the record of a batch in which an optimizer makes a step with these gradients."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    with Recorder(model) as recorder:
        set_gradients(model, *gradients)
        optimizer.step()
        return recorder.end_batch(torch.tensor(1.5))


def test_gradient_figures_by_hand() -> None:
    record = stepped(linear([[0.0, 0.0]], [0.0]), [[3.0, 0.0]], [-4.0])
    assert record == {
        "loss": 1.5,
        "lr": 0.25,
        "grad_norm": 5.0,
        "grad_mean": {"weight": 1.5, "bias": 4.0},
        "grad_norm_by_parameter": {"weight": 3.0, "bias": 4.0},
        "grad_zero_fraction": 1 / 3,
        "stale_grad_ratio": 0.0,
        "optimizer_steps": 1,
        "activations": {"first": None, "last": None},
    }


def test_first_and_last_activations_are_those_of_the_latest_training_forward() -> None:
    model = nn.Sequential(nn.Flatten(), linear([[1.0], [-3.0]], [0.0, 0.0]), nn.ReLU())
    assert first_layer(model) is model[1]
    with Recorder(model) as recorder:
        model(torch.ones(1, 1))
        model(torch.full((1, 1), 2.0))  # 2 and -6, then 2 and 0
        with torch.no_grad():
            model(torch.full((1, 1), 50.0))  # an evaluation does not count
        record = recorder.end_batch(torch.tensor(0.0))
        again = recorder.end_batch(torch.tensor(0.0))
    assert record["activations"] == {"first": {"mean": -2.0, "var": 16.0}, "last": {"mean": 1.0, "var": 1.0}}
    assert again["activations"] == {"first": None, "last": None}


@pytest.mark.parametrize(
    ("gradient", "norm", "mean", "zeros"),
    [
        ([[0.0, 0.0]], 0.0, 0.0, 1.0),
        ([[math.nan, 0.0]], math.nan, math.nan, 0.5),  # a NaN is not zero
        ([[math.inf, 1.0]], math.inf, math.inf, 0.0),
        ([[1e30, 1e30]], math.inf, 1e30, 0.0),  # the norm overflows in float32
        ([[-0.0, 1e-45]], 0.0, 1e-45 / 2, 0.5),  # the smallest positive number is not zero
    ],
)
def test_odd_gradients(gradient: list[Any], norm: float, mean: float, zeros: float) -> None:
    record = stepped(linear([[0.0, 0.0]], [0.0]), gradient, None)
    assert record["grad_zero_fraction"] == zeros
    assert record["grad_norm_by_parameter"]["weight"] == pytest.approx(norm, rel=1e-6, nan_ok=True)
    assert record["grad_mean"]["weight"] == pytest.approx(mean, rel=1e-6, nan_ok=True)


def test_parameters_without_a_gradient_give_null() -> None:
    model = linear([[0.0, 0.0]], [0.0])
    record, none = stepped(model, None, [2.0]), stepped(model, None, None)
    assert record["grad_mean"] == record["grad_norm_by_parameter"] == {"weight": None, "bias": 2.0}
    assert (record["grad_norm"], record["grad_zero_fraction"]) == (2.0, 0.0)
    assert none["grad_mean"] == {"weight": None, "bias": None}
    assert (none["grad_norm"], none["grad_zero_fraction"]) == (None, None)


def test_frozen_parameters_are_left_out_and_empty_ones_do_no_harm() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    empty = nn.Parameter(torch.empty(0))
    model[1].register_parameter("empty", empty)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Recorder(model) as recorder:
        (model(torch.ones(1, 2)).sum() + empty.sum()).backward()
        optimizer.step()
        record = recorder.end_batch(torch.tensor(0.0))
    assert list(record["grad_mean"]) == ["1.weight", "1.bias", "1.empty"]
    assert record["grad_mean"]["1.empty"] == 0.0


# --- the gradient that the optimizer used -------------------------------------------------------------------


FIRST_STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (MINI, {}),
    "harness clip": (MINI, {"clip_norm": 0.05}),
    "cleared after the step": (edited(MINI, ("    return loss", "    optimizer.zero_grad()\n    return loss")), {}),
    "scaler": (AMP_SGD, {}),
    "scaler, harness clip": (AMP_SGD, {"clip_norm": 0.05}),
}


@pytest.mark.parametrize("name", FIRST_STEPS)
def test_the_recorded_gradient_is_the_one_that_moved_the_weights(name: str, tmp_path: Path) -> None:
    source, options = FIRST_STEPS[name]
    run = mini_run(tmp_path, source, max_steps=1, **options)
    torch.manual_seed(1)
    start = load(tmp_path / "fresh", source).build_model().state_dict()
    moved = [(run.state()["model"][key] - value).double().square().sum() for key, value in start.items()]
    norm = run.batches[0]["grad_norm"]
    assert norm == pytest.approx(math.sqrt(sum(moved)) / 0.05, rel=1e-4)
    assert norm == pytest.approx(0.05, rel=1e-4) if "clip" in name else norm > 0.1


@pytest.mark.parametrize("options", [{}, {"clip_norm": 0.05}])
def test_a_fused_optimizer_under_a_scaler_is_recorded_without_the_scale(
    options: dict[str, Any], tmp_path: Path
) -> None:
    # When the hook reads `.grad`, its gradients are scaled by 256. Adam's first moment shows the true gradients.
    run = mini_run(tmp_path, AMP, max_steps=1, **options)
    moments = [entry["exp_avg"] / (1 - 0.9) for entry in run.state()["optimizer"]["state"].values()]
    used = math.sqrt(sum(float(moment.double().square().sum()) for moment in moments))
    assert run.batches[0]["grad_norm"] == pytest.approx(used, rel=1e-4)
    expected = {
        name: float(moment.double().abs().mean()) for name, moment in zip(run.state()["model"], moments, strict=True)
    }
    assert run.batches[0]["grad_mean"] == pytest.approx(expected, rel=1e-3)
    if options:
        assert used == pytest.approx(0.05, rel=1e-3)


def test_a_step_that_the_scaler_skips_is_no_step(tmp_path: Path) -> None:
    source = edited(AMP_SGD, ("init_scale=256.0", "init_scale=2.0**120"))
    first, second = mini_run(tmp_path, source, max_steps=2).batches
    assert (first["optimizer_steps"], first["lr"]) == (0, None)
    assert not math.isfinite(first["grad_norm"])
    assert second["step"] == 1


# --- gradients of an earlier batch --------------------------------------------------------------------------

CLEARED = {
    "in place": (
        "    for p in model.parameters():\n"
        "        if p.grad is not None:\n"
        "            p.grad.zero_()\n"
        "    {forward}    loss.backward()\n"
        "    optimizer.step()\n"
    ),
    "replaced": (
        "    {forward}    grads = torch.autograd.grad(loss, list(model.parameters()))\n"
        "    for p, g in zip(model.parameters(), grads):\n"
        "        p.grad = g\n"
        "    optimizer.step()\n"
    ),
    "looked at before": (
        "    {forward}    torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    ),
    "accumulated in parts": (
        "    optimizer.zero_grad()\n"
        "    for part, of in zip(inputs.chunk(2), labels.chunk(2)):\n"
        "        loss = compute_loss(model(part), of) / 2\n        loss.backward()\n"
        "    optimizer.step()\n"
    ),
}
FORWARD = "loss = compute_loss(model(inputs), labels)\n"


@pytest.mark.parametrize("where", CLEARED)
def test_no_gradient_is_stale_wherever_it_is_cleared(where: str, tmp_path: Path) -> None:
    run = mini_run(tmp_path, train_step(CLEARED[where].format(forward=FORWARD)), epochs=1)
    assert [record["stale_grad_ratio"] for record in run.batches] == [0.0] * 5
    assert all(record["grad_norm"] > 0 for record in run.batches)


def test_accumulation_over_several_batches_is_not_stale(tmp_path: Path) -> None:
    # The student's optimizer steps at every second batch, so it uses the accumulated `.grad` on purpose.
    source = train_step(
        "    loss = compute_loss(model(inputs), labels) / 2\n    loss.backward()\n    COUNT.append(1)\n"
        "    if len(COUNT) % 2 == 0:\n        optimizer.step()\n        optimizer.zero_grad()\n"
    )
    run = mini_run(tmp_path, source + "\n\nCOUNT = []\n", epochs=1)
    assert [record["stale_grad_ratio"] for record in run.batches] == [0.0] * 5
    assert [record["optimizer_steps"] for record in run.batches] == [0, 1, 0, 1, 0]
    assert [record["lr"] for record in run.batches] == [None, 0.05, None, 0.05, None]


def test_the_stale_ratio_is_the_length_of_the_old_over_that_of_the_fresh_gradient() -> None:
    # loss = x w, so the gradient is x. After x = 3, 4 and 2, the sums are 3, 7 and 9.
    model = linear([[0.0]], [0.0])
    optimizer = torch.optim.SGD([model.weight], lr=0.0)
    records = []
    with Recorder(model) as recorder:
        for x in (3.0, 4.0, 2.0):
            torch.autograd.grad((model.weight * 100.0).sum(), [model.weight])  # inspecting a gradient hides nothing
            loss = (model.weight * x).sum()
            loss.backward()
            optimizer.step()
            records.append(recorder.end_batch(loss.detach()))
    assert [record["stale_grad_ratio"] for record in records] == [0.0, 3 / 4, 7 / 2]
    assert [record["grad_norm"] for record in records] == [3.0, 7.0, 9.0]


@pytest.mark.parametrize(
    ("old", "fresh", "ratio"),
    [((3.0, 4.0), (6.0, 8.0), 0.5), ((2.0, 0.0), (0.0, 0.0), math.inf), ((0.0, 0.0), (0.0, 0.0), 0.0)],
)
def test_the_stale_ratio_is_taken_over_all_parameters(
    old: tuple[float, float], fresh: tuple[float, float], ratio: float
) -> None:
    model = nn.ParameterList([torch.zeros(1), torch.zeros(1)])
    with Recorder(model) as recorder:
        set_gradients(model, [old[0]], [old[1]])
        (model[0] * fresh[0] + model[1] * fresh[1]).sum().backward()
        record = recorder.end_batch(torch.tensor(0.0))
    assert record["stale_grad_ratio"] == ratio


# --- rates and optimizers -----------------------------------------------------------------------------------


def test_the_rate_is_the_one_used_and_not_the_next(tmp_path: Path) -> None:
    rates = [record["lr"] for record in mini_run(tmp_path, CHANCE).batches]
    # The schedule warms up to 0.05 over two steps.
    assert rates[:3] == [0.025, 0.05, 0.05]
    assert len(set(rates)) > 10


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_optimizers_each_is_recorded_for_its_own_parameters(order: tuple[int, int]) -> None:
    model = nn.Sequential(linear([[1.0]], [0.0]), linear([[1.0]], [0.0]))
    optimizers = [torch.optim.SGD(model[0].parameters(), lr=0.5), torch.optim.SGD(model[1].parameters(), lr=0.1)]
    with Recorder(model) as recorder:
        set_gradients(model, [[3.0]], [0.0], [[4.0]], [0.0])
        for index in order:
            optimizers[index].step()
            optimizers[index].zero_grad()  # before the other one steps
        record = recorder.end_batch(torch.tensor(0.0))
    assert record["grad_mean"] == {"0.weight": 3.0, "0.bias": 0.0, "1.weight": 4.0, "1.bias": 0.0}
    assert (record["grad_norm"], record["optimizer_steps"], record["lr"]) == (5.0, 2, 0.5)


# --- recording does not change the run -----------------------------------------------------------------------


def test_no_hook_outlives_the_context() -> None:
    def hooks() -> list[int]:
        parameters = [p._backward_hooks or p._post_accumulate_grad_hooks or () for p in model.parameters()]
        modules = [module._forward_hooks for module in model.modules()]
        return [*map(len, parameters), *map(len, modules), len(_global_optimizer_pre_hooks)]

    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    before = hooks()
    with pytest.raises(ValueError), Recorder(model):
        assert sum(hooks()) > sum(before)
        raise ValueError
    assert hooks() == before


@pytest.mark.parametrize("source", [CHANCE, AMP], ids=["chance", "amp"])
def test_recording_does_not_change_the_weights(source: str, tmp_path: Path) -> None:
    def weights(watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        experiment = load(tmp_path, source)
        model = experiment.build_model()
        optimizer = experiment.build_optimizer(model)
        (inputs, labels), _ = experiment.load_data(mini_data())
        recorder = Recorder(model)
        if watched:
            recorder.__enter__()
        for start in range(0, 40, 8):
            loss = experiment.train_step(model, optimizer, inputs[start : start + 8], labels[start : start + 8])
            if watched:
                assert recorder.end_batch(loss)["grad_norm"] > 0
        recorder.__exit__()
        return list(model.parameters())

    for plain, watched in zip(weights(False), weights(True), strict=True):
        assert torch.equal(plain, watched)


def test_a_failure_of_the_recording_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fail(*_: object) -> Tensor:
        raise RuntimeError("no memory")

    monkeypatch.setattr("harness.run.recorder.gradient_scalars", fail)
    monkeypatch.setattr("harness.run.recorder.gradient_norm", fail)
    with Recorder(model):
        model.weight.grad = torch.ones(1, 1)
        with pytest.raises(HarnessFault, match="no memory"):
            optimizer.step()
        loss = model(torch.ones(1, 1)).sum()
        with pytest.raises(HarnessFault, match="no memory"):
            loss.backward()
