import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from harness.run.batches import deterministic_minibatches


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(number: int) -> tuple[Tensor, Tensor]:
    """Each sample carries its own number, in the inputs and in the label."""
    labels = torch.arange(number)
    return labels.view(-1, 1, 1).float().expand(number, 2, 3), labels


@settings(deadline=None)
@given(number=st.integers(1, 60), batch_size=st.integers(1, 70), seed=st.integers(0, 2**40))
def test_one_epoch_is_a_permutation_that_keeps_inputs_and_labels_together(
    number: int, batch_size: int, seed: int
) -> None:
    inputs, labels = samples(number)
    batches = list(deterministic_minibatches(inputs, labels, batch_size, generator(seed), drop_last=False))
    assert [len(x) for x, _ in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert 1 <= len(batches[-1][0]) <= batch_size
    seen = torch.cat([y for _, y in batches])
    assert sorted(seen.tolist()) == list(range(number))
    for x, y in batches:
        assert x.shape[1:] == (2, 3)
        assert torch.equal(x[:, 1, 2], y.float())


@settings(deadline=None)
@given(number=st.integers(1, 60), batch_size=st.integers(1, 60), seed=st.integers(0, 2**40))
def test_drop_last_leaves_out_only_the_incomplete_batch(number: int, batch_size: int, seed: int) -> None:
    inputs, labels = samples(number)
    if number < batch_size:
        with pytest.raises(ValueError, match="do not fill one batch"):
            deterministic_minibatches(inputs, labels, batch_size, generator(seed), drop_last=True)
        return
    whole = list(deterministic_minibatches(inputs, labels, batch_size, generator(seed), drop_last=False))
    full = list(deterministic_minibatches(inputs, labels, batch_size, generator(seed), drop_last=True))
    assert [len(x) for x, _ in full] == [batch_size] * (number // batch_size)
    for (_, expected), (_, got) in zip(whole, full, strict=False):
        assert torch.equal(expected, got)


def test_equal_states_give_equal_batches_and_the_next_epoch_another_order() -> None:
    inputs, labels = samples(50)
    rng, twin = generator(3), generator(3)
    first = [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, rng)]
    assert first == [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, twin)]
    assert first != [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, rng)]
    assert first != [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, generator(4))]


def test_rng_is_advanced_by_one_permutation_at_the_call_however_far_the_batches_are_read() -> None:
    inputs, labels = samples(20)
    rng, expected = generator(7), generator(7)
    torch.randperm(20, generator=expected)
    batches = iter(deterministic_minibatches(inputs, labels, 4, rng))
    assert torch.equal(rng.get_state(), expected.get_state())
    next(batches)
    assert torch.equal(rng.get_state(), expected.get_state())


def test_batches_do_not_depend_on_the_global_generator_and_are_copies() -> None:
    inputs, labels = samples(10)
    inputs = inputs.clone()
    torch.manual_seed(0)
    first, _ = next(iter(deterministic_minibatches(inputs, labels, 10, generator(1))))
    torch.manual_seed(1)
    second, _ = next(iter(deterministic_minibatches(inputs, labels, 10, generator(1))))
    assert torch.equal(first, second)
    first.zero_()
    assert inputs.abs().sum() > 0


@pytest.mark.parametrize(
    ("inputs", "labels", "batch_size", "message"),
    [
        (torch.zeros(5, 2), torch.zeros(4), 2, "5 samples and labels hold 4"),
        (torch.zeros(5, 2), torch.zeros(5), 0, "batch_size is 0: choose 1 or more"),
        (torch.zeros(0, 2), torch.zeros(0), 2, "no samples"),
        (torch.tensor(1.0), torch.zeros(1), 1, "batch-first"),
    ],
)
def test_bad_arguments_are_refused_at_the_call(
    inputs: Tensor, labels: Tensor, batch_size: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        deterministic_minibatches(inputs, labels, batch_size, generator(0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_order_is_the_same_on_a_cuda_device_and_a_cuda_generator_is_refused() -> None:
    inputs, labels = samples(30)
    here = [y.tolist() for _, y in deterministic_minibatches(inputs, labels, 8, generator(0))]
    there = list(deterministic_minibatches(inputs.cuda(), labels.cuda(), 8, generator(0)))
    assert here == [y.tolist() for _, y in there]
    assert all(x.device.type == "cuda" for x, _ in there)
    with pytest.raises(ValueError, match="on the CPU"):
        deterministic_minibatches(inputs, labels, 8, torch.Generator("cuda"))
