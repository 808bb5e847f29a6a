"""Batch-first shape checks where data changes hands: shapes, dtypes and devices, which cost no transfer."""

from typing import NoReturn

import torch
from torch import Tensor

from harness.errors import UserError


def check_batch(inputs: object, labels: object, *, where: str) -> None:
    """Check one batch, or a whole set, that `where` (a function's name, say) returned.

    `inputs` must be a floating-point tensor `[samples, ...]` with at least one more dimension, and `labels`
    a tensor on the same device with as many samples: class indices, int64 `[samples]`, or floating-point
    targets `[samples, ...]`. Raises `UserError` that says what was expected and what came.
    """
    if not isinstance(inputs, Tensor) or not isinstance(labels, Tensor):
        _refuse(where, "inputs and labels", "two tensors", f"{_describe(inputs)} and {_describe(labels)}")
    if inputs.dim() < 2 or inputs.shape[0] == 0 or not inputs.is_floating_point():
        _refuse(where, "inputs", "a floating-point tensor [samples, ...], batch-first", _describe(inputs))
    if labels.dim() == 0 or labels.shape[0] != inputs.shape[0]:
        expected = f"{inputs.shape[0]} labels, one for each sample of the inputs {list(inputs.shape)}"
        _refuse(where, "labels", expected, _describe(labels))
    if not labels.is_floating_point() and (labels.dtype != torch.int64 or labels.dim() != 1):
        _refuse(
            where,
            "labels",
            "class indices, torch.int64 [samples], or floating-point targets",
            _describe(labels),
        )
    if labels.device != inputs.device:
        _refuse(where, "labels", f"a tensor on {inputs.device}, as the inputs are", f"one on {labels.device}")


def check_outputs(outputs: object, batch_size: int, classes: int | None, where: str) -> None:
    """Check what a model made of a batch of `batch_size` samples.

    It must be a floating-point tensor: logits `[batch_size, classes]`, or for `classes=None` (a regression)
    `[batch_size, ...]`. Raises `UserError`.
    """
    expected = f"a floating-point tensor [{batch_size}, {'...' if classes is None else classes}], batch-first"
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point() or outputs.dim() == 0:
        _refuse(where, "outputs", expected, _describe(outputs))
    if outputs.shape[0] != batch_size or (
        classes is not None and list(outputs.shape) != [batch_size, classes]
    ):
        _refuse(where, "outputs", expected, _describe(outputs))


def check_split(inputs: object, labels: object, *, where: str) -> None:
    """Check one whole split, training or validation, once before training.

    It must pass `check_batch`, and class indices must not be negative: this is the one check here that reads
    numbers, in a single transfer. Raises `UserError`.
    """
    check_batch(inputs, labels, where=where)
    if isinstance(labels, Tensor) and not labels.is_floating_point() and (lowest := int(labels.min())) < 0:
        _refuse(where, "labels", "class indices, counted from 0", f"{lowest}")


def _refuse(where: str, what: str, expected: str, got: str) -> NoReturn:
    raise UserError(f"{where}: {what}: expected {expected}, got {got}")


def _describe(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{list(value.shape)} of {value.dtype}"
    return f"a value of type {type(value).__name__}"
