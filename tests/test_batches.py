import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from harness.run.setup import deterministic_minibatches


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(number: int) -> tuple[Tensor, Tensor]:
    """Return samples that carry their own number, in the inputs and in the label."""
    labels = torch.arange(number)
    return labels.view(-1, 1, 1).float().expand(number, 2, 3), labels


@settings(deadline=None)
@given(number=st.integers(1, 60), batch_size=st.integers(1, 60), seed=st.integers(0, 2**40))
def test_an_epoch_has_whole_batches_of_different_examples(number: int, batch_size: int, seed: int) -> None:
    batches = list(deterministic_minibatches(*samples(number), batch_size, generator(seed)))
    assert [len(x) for x, _ in batches] == [batch_size] * (number // batch_size)
    order = torch.randperm(number, generator=generator(seed))[: len(batches) * batch_size]
    assert [label for _, y in batches for label in y.tolist()] == order.tolist()
    for x, y in batches:
        assert x.shape[1:] == (2, 3)
        assert torch.equal(x[:, 1, 2], y.float())


def test_one_permutation_advances_the_generator_however_far_the_batches_are_read() -> None:
    rng, expected = generator(7), generator(7)
    torch.randperm(20, generator=expected)
    batches = iter(deterministic_minibatches(*samples(20), 4, rng))
    assert torch.equal(rng.get_state(), expected.get_state())
    next(batches)
    assert torch.equal(rng.get_state(), expected.get_state())


def test_batches_are_copies() -> None:
    inputs, labels = samples(10)
    inputs = inputs.clone()
    next(iter(deterministic_minibatches(inputs, labels, 10, generator(1))))[0].zero_()
    assert inputs.abs().sum() > 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_the_order_is_the_same_on_a_cuda_device() -> None:
    inputs, labels = samples(30)
    here = [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, generator(0))]
    there = list(deterministic_minibatches(inputs.cuda(), labels.cuda(), 8, generator(0)))
    assert here == [y.tolist() for _, y in there]
