import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from harness.errors import UserError
from harness.run.batches import check_batch, check_split, deterministic_minibatches


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
        (torch.zeros(5, 2), torch.zeros(4), 2, "one label for each sample"),
        (torch.zeros(5, 2), torch.zeros(5), 0, "batch_size is 0: choose 1 or more"),
        (torch.zeros(0, 2), torch.zeros(0), 2, "at least one sample"),
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


IMAGES = torch.zeros(8, 1, 28, 28)
LABELS = torch.zeros(8, dtype=torch.int64)


@pytest.mark.parametrize("labels", [LABELS, torch.zeros(8), torch.zeros(8, 784)])
@pytest.mark.parametrize("inputs", [IMAGES, torch.zeros(8, 3, dtype=torch.float64), torch.zeros(8, 3).half()])
def test_good_batches_pass(inputs: torch.Tensor, labels: torch.Tensor) -> None:
    check_batch(inputs, labels, where="prepare_batch")
    check_split(inputs, labels, where="load_data")


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([1, 2], LABELS, "inputs and labels: expected two tensors, got a value of type list"),
        (IMAGES, None, "inputs and labels: expected two tensors, got .* and a value of type NoneType"),
        (torch.zeros(8), LABELS, r"inputs: expected .*batch-first, got \[8\] of torch.float32"),
        (torch.zeros(0, 3), LABELS[:0], r"inputs: expected .*got \[0, 3\]"),
        (IMAGES.to(torch.uint8), LABELS, "inputs: .*got .* of torch.uint8"),
        (IMAGES, LABELS[:7], r"labels: expected 8 labels, .*\[8, 1, 28, 28\], got \[7\]"),
        # Channels-first data that lost its batch dimension, and labels of shape [].
        (IMAGES, torch.tensor(3), r"labels: expected 8 labels.*got \[\]"),
        (IMAGES, LABELS.int(), "labels: expected class indices.*got .*torch.int32"),
        (IMAGES, LABELS.view(8, 1), r"labels: expected class indices.*got \[8, 1\]"),
        (IMAGES, torch.zeros(8, device="meta"), "labels: expected a tensor on cpu, .*got one on meta"),
    ],
)
def test_bad_batches_are_refused_with_what_where_expected_and_got(
    inputs: object, labels: object, message: str
) -> None:
    for check in (check_batch, check_split):
        with pytest.raises(UserError, match=f"^prepare_batch: {message}"):
            check(inputs, labels, where="prepare_batch")


def test_a_split_with_negative_class_indices_is_refused() -> None:
    labels = torch.tensor([0, 1, -100, 3, 0, 0, 0, 0])
    check_batch(IMAGES, labels, where="metadata only")
    with pytest.raises(UserError, match=r"^load_data: labels: .*counted from 0, got -100"):
        check_split(IMAGES, labels, where="load_data")


def test_check_batch_reads_no_numbers() -> None:
    """Tensors on the meta device have none."""
    with torch.device("meta"):
        check_batch(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), where="here")
