import pytest
import torch
from torch import Tensor, nn

from harness.run.activation_recorder import ActivationRecorder
from harness.run.diagnostics import activation_quantiles, activation_statistics


def model_and_inputs() -> tuple[nn.Sequential, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 3))
    return model, torch.randn(6, 4)


def outputs_by_hand(model: nn.Sequential, inputs: Tensor) -> dict[str, Tensor]:
    outputs = {}
    for name in ("0", "1.0", "1.1", "2"):
        inputs = outputs[name] = model.get_submodule(name)(inputs)
    return outputs


def test_every_leaf_module_is_recorded_by_name() -> None:
    model, inputs = model_and_inputs()
    with ActivationRecorder(model, quantiles=(0.1, 0.9)) as recorder:
        model(inputs)
    expected = outputs_by_hand(model, inputs)
    assert recorder.statistics() == {name: activation_statistics(output) for name, output in expected.items()}
    assert recorder.quantiles() == {
        name: activation_quantiles(output, (0.1, 0.9)) for name, output in expected.items()
    }


def test_recording_changes_neither_outputs_nor_gradients() -> None:
    model, inputs = model_and_inputs()
    plain = model(inputs)
    plain_gradients = torch.autograd.grad(plain.square().sum(), list(model.parameters()))
    with ActivationRecorder(model, quantiles=(0.5,)):
        watched = model(inputs)
        gradients = torch.autograd.grad(watched.square().sum(), list(model.parameters()))
    assert torch.equal(plain, watched)
    assert all(torch.equal(a, b) for a, b in zip(plain_gradients, gradients, strict=True))


def test_the_latest_call_counts_and_hooks_are_gone_afterwards_even_after_an_error() -> None:
    model, inputs = model_and_inputs()
    with ActivationRecorder(model) as recorder:
        model(inputs)
        model(2 * inputs)
    latest = recorder.statistics()
    assert latest["0"] == activation_statistics(model[0](2 * inputs))
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
    assert recorder.statistics() == {"LSTM": activation_statistics(output)}


def test_modules_without_a_tensor_or_with_an_empty_one_are_left_out() -> None:
    class Shape(nn.Module):
        def forward(self, inputs: Tensor) -> list[int]:
            return list(inputs.shape)

    with ActivationRecorder(Shape()) as recorder:
        pass
    assert recorder.statistics() == {}
    shape, linear = Shape(), nn.Linear(2, 2)
    with ActivationRecorder(shape) as of_shape, ActivationRecorder(linear) as of_linear:
        shape(torch.ones(2))
        linear(torch.ones(0, 2))
    assert of_shape.statistics() == {}
    assert of_linear.statistics() == {}


def test_impossible_quantiles_are_refused_before_any_hook() -> None:
    model, _ = model_and_inputs()
    with pytest.raises(ValueError, match="does not exist"):
        ActivationRecorder(model, quantiles=(2.0,))
