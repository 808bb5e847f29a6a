import pytest
import torch

from harness.errors import UserError
from harness.run.shape_checks import check_batch, check_outputs, check_split

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


def test_batch_and_output_checks_read_no_numbers() -> None:
    """Tensors on the meta device have none."""
    with torch.device("meta"):
        check_batch(torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), where="here")
        check_outputs(torch.zeros(4, 10), 4, 10, "here")


def test_good_outputs_pass() -> None:
    check_outputs(torch.zeros(8, 10), 8, 10, "model")
    check_outputs(torch.zeros(8, 784), 8, None, "model")
    check_outputs(torch.zeros(8), 8, None, "model")


@pytest.mark.parametrize(
    ("outputs", "classes", "message"),
    [
        (torch.zeros(10, 8), 10, r"expected a floating-point tensor \[8, 10\], batch-first, got \[10, 8\]"),
        (torch.zeros(8, 9), 10, r"got \[8, 9\]"),
        (torch.zeros(8, 10, 1), 10, r"got \[8, 10, 1\]"),
        (torch.zeros(8, 10).long(), 10, "of torch.int64"),
        (torch.zeros(7, 784), None, r"expected a floating-point tensor \[8, \.\.\.\].*got \[7, 784\]"),
        (torch.tensor(1.0), None, r"got \[\]"),
        ((torch.zeros(8, 10),), 10, "a value of type tuple"),
    ],
)
def test_bad_outputs_are_refused(outputs: object, classes: int | None, message: str) -> None:
    with pytest.raises(UserError, match=f"^the model: outputs: .*{message}"):
        check_outputs(outputs, 8, classes, "the model")
