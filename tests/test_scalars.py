import math

import pytest
import torch

from harness.run.scalars import gradient_scalars, mean_and_variance, norm, numbers

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms_and_living_entries_by_hand(dtype: torch.dtype) -> None:
    assert gradient_scalars(torch.tensor([[3.0, -4.0], [0.0, -0.0]], dtype=dtype)) == (7.0, 5.0, 2.0)
    assert norm(torch.tensor([3.0, -4.0], dtype=dtype)) == 5.0


def test_large_tensors_agree_with_torch_in_float64() -> None:
    gradient = torch.randn(300, 701, generator=torch.Generator().manual_seed(0))[:, ::2]
    exact = gradient.double()
    first, second, alive = gradient_scalars(gradient)
    assert first == pytest.approx(float(exact.abs().sum()), rel=1e-6)
    assert second == pytest.approx(float(torch.linalg.vector_norm(exact)), rel=1e-6)
    assert alive == torch.count_nonzero(gradient).item()
    mean, variance = mean_and_variance(gradient)
    assert mean == pytest.approx(float(exact.mean()), abs=1e-7)
    assert variance == pytest.approx(float(exact.var(correction=0)), rel=1e-5)


def test_numbers_that_are_not_finite_show() -> None:
    first, second, alive = gradient_scalars(torch.tensor([math.nan, 1.0, 0.0]))
    assert math.isnan(float(first)) and math.isnan(float(second)) and alive == 2.0
    assert gradient_scalars(torch.tensor([math.inf, 0.0])) == (math.inf, math.inf, 1.0)
    assert gradient_scalars(torch.full((4,), 3e38))[1] == math.inf


def test_nothing_and_one_entry() -> None:
    assert gradient_scalars(torch.empty(0)) == (0.0, 0.0, 0.0)
    assert all(math.isnan(float(value)) for value in mean_and_variance(torch.empty(0)))
    assert mean_and_variance(torch.tensor([2.5])) == (2.5, 0.0)


def test_tensors_and_floats_come_back_in_their_order() -> None:
    assert numbers([1.5, torch.tensor(2.5), 3.5, torch.tensor([4.5])]) == [1.5, 2.5, 3.5, 4.5]
    assert numbers([1.0]) == [1.0]
