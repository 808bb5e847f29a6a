import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from harness.run import diagnostics
from harness.run.diagnostics import (
    QUANTILES,
    activation_quantiles,
    activation_statistics,
    assert_finite,
    global_gradient_norm,
    gradient_quantiles,
    non_finite_entries,
    zero_fraction,
)


def with_gradients(*values: list[float], dtype: torch.dtype = torch.float32) -> nn.ParameterList:
    parameters = nn.ParameterList([nn.Parameter(torch.zeros(len(v), dtype=dtype)) for v in values])
    for parameter, gradient in zip(parameters, values, strict=True):
        parameter.grad = torch.tensor(gradient, dtype=dtype)
    return parameters


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_global_gradient_norm_is_that_of_one_long_vector() -> None:
    parameters = with_gradients([3.0, 0.0], [4.0], [12.0])
    parameters.append(nn.Parameter(torch.ones(5)))  # has no gradient
    assert global_gradient_norm(parameters) == 13.0
    expected = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    assert global_gradient_norm(parameters) == pytest.approx(expected.item())


def test_global_gradient_norm_of_no_gradients_is_zero() -> None:
    assert global_gradient_norm([]) == 0.0
    assert global_gradient_norm([nn.Parameter(torch.ones(3))]) == 0.0


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1e30, torch.float32), (1e-30, torch.float32), (2e4, torch.float16), (2e-7, torch.float16)],
)
def test_global_gradient_norm_neither_overflows_nor_vanishes(size: float, dtype: torch.dtype) -> None:
    gradient = torch.tensor(size, dtype=dtype).item()
    assert global_gradient_norm(with_gradients([size, 0.0], [-size], dtype=dtype)) == pytest.approx(
        gradient * math.sqrt(2), rel=1e-12
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_global_gradient_norm_shows_what_is_not_finite(bad: float) -> None:
    assert not math.isfinite(global_gradient_norm(with_gradients([1.0, bad], [1.0])))


def test_gradient_quantiles_are_of_absolute_values_by_parameter() -> None:
    parameters = with_gradients([-4.0, 1.0, -2.0, 3.0, 0.0], [7.0])
    parameters.append(nn.Parameter(torch.ones(5)))
    assert gradient_quantiles(parameters, (0.0, 0.5, 0.625, 1.0)) == {
        "0": [0.0, 2.0, 2.5, 4.0],
        "1": [7.0] * 4,
    }
    assert gradient_quantiles(nn.Linear(2, 2)) == {}


def test_quantiles_of_float16_nan_and_mixed_dtypes() -> None:
    parameters = nn.ParameterList(
        [*with_gradients([1.0, math.nan]), *with_gradients([2.0, 4.0], dtype=torch.float16)]
    )
    parameters.append(*with_gradients([8.0], dtype=torch.float64))
    result = gradient_quantiles(parameters, (0.5,))
    assert math.isnan(result["0"][0])
    assert (result["1"], result["2"]) == ([3.0], [8.0])


@settings(deadline=None)
@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50))
def test_activation_quantiles_and_statistics_agree_with_numpy(values: list[float]) -> None:
    import numpy as np

    tensor = torch.tensor(values)
    exact = np.array(values)
    tolerance = 1e-5 * (1 + float(np.abs(exact).max()))
    assert activation_quantiles(tensor) == pytest.approx(
        np.quantile(exact, QUANTILES).tolist(), abs=tolerance
    )
    statistics = activation_statistics(tensor)
    assert statistics["mean"] == pytest.approx(exact.mean(), abs=tolerance)
    assert statistics["var"] == pytest.approx(exact.var(), rel=1e-4, abs=tolerance**2)


def test_activation_statistics_of_one_number_of_float16_and_of_integers() -> None:
    assert activation_statistics(torch.tensor([[3.0]])) == {"mean": 3.0, "var": 0.0}
    # 300**2 is beyond float16.
    assert activation_statistics(torch.tensor([-300.0, 300.0]).half()) == {"mean": 0.0, "var": 9e4}
    assert activation_statistics(torch.tensor([1, 2])) == {"mean": 1.5, "var": 0.25}


def test_large_tensors_are_sampled_evenly_over_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "SAMPLE_LIMIT", 1000)
    # Each of 8 columns holds its own number; a stride of 8 would only see one of them.
    columns = torch.arange(8.0).expand(1000, 8)
    assert activation_quantiles(columns, (0.0, 0.5, 1.0)) == pytest.approx([0.0, 3.5, 7.0], abs=0.51)
    values = random(100, 100)
    sampled = activation_quantiles(values)
    assert sampled == activation_quantiles(values)
    monkeypatch.undo()
    assert sampled != activation_quantiles(values)
    assert sampled == pytest.approx(activation_quantiles(values), abs=0.4)


def test_tensors_beyond_the_limit_of_torch_quantile_are_read() -> None:
    low, high = activation_quantiles(torch.linspace(0, 1, 2**24 + 2), (0.01, 0.99))
    assert (low, high) == pytest.approx((0.01, 0.99), abs=1e-4)


def test_bad_quantiles_and_empty_tensors_are_refused() -> None:
    for quantile in (1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match="does not exist: choose numbers from 0 to 1"):
            activation_quantiles(torch.ones(3), (quantile,))
    with pytest.raises(ValueError, match="no entries"):
        activation_quantiles(torch.ones(0, 3))
    with pytest.raises(ValueError, match="no entries"):
        activation_statistics(torch.ones(0, 3))


def test_zero_fraction_counts_exact_zeros_only() -> None:
    tensors = [torch.tensor([0.0, -0.0, 1e-45, math.nan]), torch.tensor([[0.0, 1.0], [2.0, 3.0]])]
    assert zero_fraction(tensors) == 3 / 8
    assert zero_fraction([]) == zero_fraction([torch.ones(0)]) == 0.0
    assert zero_fraction(iter([torch.zeros(2)])) == 1.0


@pytest.mark.parametrize(("exponent", "fraction"), [(-25, 1.0), (-24, 0.0)])
def test_zero_fraction_shows_underflow_in_float16(exponent: int, fraction: float) -> None:
    assert zero_fraction([torch.full((4,), 2.0**exponent).half()]) == fraction


def test_non_finite_entries_names_the_tensors() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    assert non_finite_entries(model.named_parameters()) == []
    with torch.no_grad():
        model.get_parameter("0.bias")[1] = math.inf
        model.get_parameter("1.weight")[0, 1] = math.nan
    assert non_finite_entries(model.named_parameters()) == ["0.bias", "1.weight"]
    assert non_finite_entries([]) == []
    assert non_finite_entries([("labels", torch.tensor([1, 2]))]) == []


def test_assert_finite_says_which_tensor_and_how_many() -> None:
    assert_finite("loss", torch.tensor(1.0))
    assert_finite("nothing", torch.ones(0))
    bad = torch.tensor([1.0, math.nan, -math.inf, math.inf], requires_grad=True)
    with pytest.raises(FloatingPointError, match=r"^logits: of 4 entries 1 are NaN and 2 infinite"):
        assert_finite("logits", bad)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_results_on_a_cuda_device_are_those_of_the_cpu() -> None:
    model = nn.Linear(20, 10)
    torch.autograd.backward(model(random(5, 20)).square().sum())
    here = (global_gradient_norm(model.parameters()), gradient_quantiles(model))
    on_card = nn.Linear(20, 10).cuda()
    for parameter, source in zip(on_card.parameters(), model.parameters(), strict=True):
        assert source.grad is not None
        parameter.grad = source.grad.cuda()
    assert global_gradient_norm(on_card.parameters()) == pytest.approx(here[0], rel=1e-6)
    for name, row in gradient_quantiles(on_card).items():
        assert row == pytest.approx(here[1][name], rel=1e-5)
