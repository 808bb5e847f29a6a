"""Minibatches in an order that depends on one generator only, and checks of the tensors in them."""

from collections.abc import Iterator
from typing import NoReturn

import torch
from torch import Tensor

from harness.errors import UserError


def deterministic_minibatches(
    inputs: Tensor, labels: Tensor, batch_size: int, rng: torch.Generator, drop_last: bool = False
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return one epoch of shuffled minibatches `(inputs, labels)`, each sample exactly once.

    `inputs` is `[samples, ...]` and `labels` is `[samples, ...]`, on any device; batches are copies on the same
    device. A batch is `[batch_size, ...]`; the last one holds the rest, unless `drop_last` leaves it out. `rng` is a
    generator on the CPU, so the order is the same on every device. One `torch.randperm` advances it when this
    function is called, not while the batches are read, so leaving the loop early changes nothing.

    Raises `ValueError` if the lengths differ, the batch size is below 1, there is no batch, or `rng` is not on
    the CPU.
    """
    samples = len(inputs) if inputs.dim() else 0
    if not samples or labels.dim() == 0 or len(labels) != samples:
        raise ValueError(
            f"inputs {list(inputs.shape)} and labels {list(labels.shape)} must be batch-first, [samples, ...],"
            " with one label for each sample and at least one sample"
        )
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: choose 1 or more")
    if rng.device.type != "cpu":
        raise ValueError(f"rng is a generator on {rng.device}: use torch.Generator(), which is on the CPU")
    if drop_last and samples < batch_size:
        raise ValueError(
            f"{samples} samples do not fill one batch of {batch_size}, and drop_last leaves out the rest:"
            f" choose a batch_size of at most {samples}, or drop_last=False"
        )
    order = torch.randperm(samples, generator=rng)
    used = samples - samples % batch_size if drop_last else samples
    return _batches(inputs, labels, order[:used], batch_size)


def _batches(
    inputs: Tensor, labels: Tensor, order: Tensor, batch_size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    input_order, label_order = order.to(inputs.device), order.to(labels.device)
    for start in range(0, len(order), batch_size):
        stop = start + batch_size
        yield inputs[input_order[start:stop]], labels[label_order[start:stop]]


def run_generators(seed: int) -> dict[str, torch.Generator]:
    """Return the generators of a run: one for the order of the examples, one for augmentation.

    They are two, so that the augmentation of an experiment never changes the order of its examples.
    """
    return {
        "order": torch.Generator().manual_seed(seed),
        "augmentation": torch.Generator().manual_seed(seed + 2**32),
    }


def check_split(inputs: object, labels: object, *, where: str) -> None:
    """Check one whole split, training or validation, once before training.

    It must pass `check_batch`, and class indices must not be negative: only this check reads numbers, in one
    transfer. Raises `UserError`.
    """
    check_batch(inputs, labels, where=where)
    if isinstance(labels, Tensor) and not labels.is_floating_point() and (lowest := int(labels.min())) < 0:
        _refuse(where, "labels", "class indices, counted from 0", f"{lowest}")


def check_batch(inputs: object, labels: object, *, where: str) -> None:
    """Check shapes, dtypes and devices of a batch or a split; `where` names the function that returned it.

    `inputs` must be a floating-point tensor `[samples, ...]` with at least two dimensions, and `labels` a tensor
    on the same device with as many samples: class indices, int64 `[samples]`, or floating-point targets
    `[samples, ...]`. Raises `UserError` that names what was expected and what came.
    """
    if not isinstance(inputs, Tensor) or not isinstance(labels, Tensor):
        _refuse(where, "inputs and labels", "two tensors", f"{_describe(inputs)} and {_describe(labels)}")
    if inputs.dim() < 2 or inputs.shape[0] == 0 or not inputs.is_floating_point():
        _refuse(where, "inputs", "a floating-point tensor [samples, ...], batch-first", _describe(inputs))
    if labels.dim() == 0 or labels.shape[0] != inputs.shape[0]:
        expected = f"{inputs.shape[0]} labels, one for each sample of the inputs {list(inputs.shape)}"
        _refuse(where, "labels", expected, _describe(labels))
    if not labels.is_floating_point() and (labels.dtype != torch.int64 or labels.dim() != 1):
        expected = "class indices, torch.int64 [samples], or floating-point targets"
        _refuse(where, "labels", expected, _describe(labels))
    if labels.device != inputs.device:
        _refuse(where, "labels", f"a tensor on {inputs.device}, like the inputs", f"one on {labels.device}")


def _refuse(where: str, what: str, expected: str, got: str) -> NoReturn:
    raise UserError(f"{where}: {what}: expected {expected}, got {got}")


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {value.dtype}"
    return f"a value of type {type(value).__name__}"
