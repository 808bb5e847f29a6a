import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from harness.run import activations
from harness.run.activations import (
    QUANTILES,
    ActivationRecorder,
    Statistics,
    as_lists,
    quantiles_on_device,
)


def quantiles(tensor: Tensor, levels: tuple[float, ...] = QUANTILES) -> list[float]:
    return as_lists({"": quantiles_on_device(tensor, levels)})[""]


def statistics(tensor: Tensor) -> Statistics:
    values = tensor.detach()
    return {"mean": values.mean().item(), "var": values.var(correction=0).item()}


def model_and_inputs() -> tuple[nn.Sequential, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 3))
    return model, torch.randn(6, 4)


def test_every_leaf_module_is_recorded_by_name() -> None:
    model, inputs = model_and_inputs()
    with ActivationRecorder(model, quantiles=(0.1, 0.9)) as recorder:
        model(inputs)
    output = inputs
    for name in ("0", "1.0", "1.1", "2"):
        output = model.get_submodule(name)(output)
        assert recorder.statistics()[name] == pytest.approx(statistics(output), rel=1e-5, abs=1e-6)
        assert recorder.quantiles()[name] == quantiles(output, (0.1, 0.9))
    assert list(recorder.statistics()) == ["0", "1.0", "1.1", "2"]


def test_recording_changes_neither_outputs_nor_gradients() -> None:
    model, inputs = model_and_inputs()
    plain = model(inputs)
    plain_gradients = torch.autograd.grad(plain.square().sum(), list(model.parameters()))
    with ActivationRecorder(model, quantiles=(0.5,)):
        watched = model(inputs)
        gradients = torch.autograd.grad(watched.square().sum(), list(model.parameters()))
    assert torch.equal(plain, watched)
    assert all(torch.equal(a, b) for a, b in zip(plain_gradients, gradients, strict=True))


def test_the_latest_call_counts_and_hooks_are_removed_even_after_an_error() -> None:
    model, inputs = model_and_inputs()
    with ActivationRecorder(model) as recorder:
        model(inputs)
        model(2 * inputs)
    latest = recorder.statistics()
    assert latest["0"] == pytest.approx(statistics(model[0](2 * inputs)), rel=1e-5)
    model(5 * inputs)
    assert recorder.statistics() == latest
    assert recorder.quantiles() == {}
    with pytest.raises(RuntimeError), ActivationRecorder(model):
        model(torch.zeros(6, 5))
    assert not any(module._forward_hooks for module in model.modules())


def test_tuples_count_by_their_first_tensor_and_a_single_module_by_its_class() -> None:
    layer = nn.LSTM(4, 5)
    inputs = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0))
    with ActivationRecorder(layer) as recorder:
        output, _ = layer(inputs)
    assert recorder.statistics() == {"LSTM": pytest.approx(statistics(output), rel=1e-5)}


def test_modules_without_a_tensor_or_with_an_empty_one_are_left_out() -> None:
    class Shape(nn.Module):
        def forward(self, inputs: Tensor) -> list[int]:
            return list(inputs.shape)

    shape, linear = Shape(), nn.Linear(2, 2)
    with ActivationRecorder(shape) as of_shape, ActivationRecorder(linear) as of_linear:
        shape(torch.ones(2))
        linear(torch.ones(0, 2))
    assert of_shape.statistics() == of_linear.statistics() == {}


@settings(deadline=None)
@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50))
def test_quantiles_agree_with_numpy(values: list[float]) -> None:
    import numpy as np

    exact = np.array(values)
    tolerance = 1e-5 * (1 + float(np.abs(exact).max()))
    assert quantiles(torch.tensor(values)) == pytest.approx(
        np.quantile(exact, QUANTILES).tolist(), abs=tolerance
    )


def test_quantiles_of_float16_and_of_nan() -> None:
    assert quantiles(torch.tensor([2.0, 4.0]).half(), (0.5,)) == [3.0]
    assert math.isnan(quantiles(torch.tensor([1.0, math.nan]), (0.5,))[0])
    assert as_lists({}) == {}


def test_large_tensors_are_sampled_evenly_over_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activations, "SAMPLE_LIMIT", 1000)
    # Each of 8 columns holds its own number; a stride of 8 would only see one of them.
    columns = torch.arange(8.0).expand(1000, 8)
    assert quantiles(columns, (0.0, 0.5, 1.0)) == pytest.approx([0.0, 3.5, 7.0], abs=0.51)
    values = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    sampled = quantiles(values)
    assert sampled == quantiles(values)
    monkeypatch.undo()
    assert sampled != quantiles(values)
    assert sampled == pytest.approx(quantiles(values), abs=0.4)
