import math
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.losses import chance_loss, stable_cross_entropy

Reduction = Literal["mean", "sum", "none"]
REDUCTIONS: tuple[Reduction, ...] = ("mean", "sum", "none")


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    samples=st.integers(1, 20),
    classes=st.integers(1, 12),
    spread=st.sampled_from([0.01, 1.0, 30.0]),
    reduction=st.sampled_from(REDUCTIONS),
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_agrees_with_torch(
    seed: int,
    samples: int,
    classes: int,
    spread: float,
    reduction: Reduction,
    dtype: torch.dtype,
    tolerance: float,
) -> None:
    rng = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(samples, classes, generator=rng, dtype=dtype)
    labels = torch.randint(classes, (samples,), generator=rng)
    expected = F.cross_entropy(logits, labels, reduction=reduction)
    got = stable_cross_entropy(logits, labels, reduction)
    assert got.dtype == dtype
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


def test_gradients_by_finite_differences() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 3, 1, 1, 2])
    for reduction in REDUCTIONS:

        def loss(z: torch.Tensor, reduction: Reduction = reduction) -> torch.Tensor:
            return stable_cross_entropy(z, labels, reduction)

        assert torch.autograd.gradcheck(loss, (logits,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_huge_logits_stay_finite_forward_and_backward(dtype: torch.dtype) -> None:
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]], dtype=dtype, requires_grad=True)
    loss = stable_cross_entropy(logits, torch.tensor([0, 0]), "none")
    assert loss[0].item() == 0.0
    assert loss[1].item() == pytest.approx(2e4, rel=0.01)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.autograd.backward(loss.sum())
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad[1].double(), torch.tensor([-1.0, 1.0, 0.0]).double())


def test_adding_a_constant_to_all_logits_changes_nothing() -> None:
    # Powers of two, so that the sums themselves are exact.
    logits, labels = torch.tensor([[0.5, -0.25, 2.0]]), torch.tensor([1])
    assert torch.equal(stable_cross_entropy(logits, labels), stable_cross_entropy(logits + 1024, labels))


def test_float16_is_computed_in_float32() -> None:
    logits = torch.randn(64, 10, generator=torch.Generator().manual_seed(1)).half()
    labels = torch.arange(64) % 10
    expected = stable_cross_entropy(logits.float(), labels)
    assert torch.equal(stable_cross_entropy(logits, labels), expected)


def test_labels_may_be_any_integers() -> None:
    logits, labels = torch.randn(3, 4, generator=torch.Generator().manual_seed(2)), torch.tensor([3, 0, 2])
    for dtype in (torch.uint8, torch.int32):
        assert torch.equal(
            stable_cross_entropy(logits, labels.to(dtype)), stable_cross_entropy(logits, labels)
        )


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3), torch.zeros(3, dtype=torch.int64), r"got \[3\] and \[3\]"),
        (torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64), r"got \[3, 2\] and \[2\]"),
        (torch.zeros(3, 2), torch.zeros(3), "class indices"),
        (torch.zeros(3, 2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64), "floating-point"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), "at least one sample"),
    ],
)
def test_wrong_tensors_are_refused(logits: torch.Tensor, labels: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stable_cross_entropy(logits, labels)


def test_a_label_that_does_not_exist_and_an_unknown_reduction_are_refused() -> None:
    for label in (2, -1):
        with pytest.raises((RuntimeError, IndexError)):
            stable_cross_entropy(torch.zeros(1, 2), torch.tensor([label]))
    with pytest.raises(ValueError, match='choose "mean", "sum" or "none"'):
        stable_cross_entropy(torch.zeros(1, 2), torch.tensor([0]), "average")  # type: ignore[arg-type]


@pytest.mark.parametrize("classes", [1, 2, 10, 1000])
def test_chance_loss_is_the_loss_of_equal_logits(classes: int) -> None:
    logits = torch.full((4, classes), 0.7, dtype=torch.float64)
    expected = F.cross_entropy(logits, torch.zeros(4, dtype=torch.int64)).item()
    assert chance_loss(classes) == pytest.approx(expected, abs=1e-12)
    assert math.exp(chance_loss(classes)) == pytest.approx(classes)


def test_chance_loss_of_no_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="0 classes"):
        chance_loss(0)
