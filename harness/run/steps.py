"""The harness's own training step: accumulation, mixed precision and clipping in the order that is right."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    compute_loss: Callable[[Tensor, Tensor], Tensor],
    inputs: Tensor,
    labels: Tensor,
    *,
    parts: int = 1,
    clip_norm: float | None = None,
    scaler: GradScaler | None = None,
    autocast_dtype: torch.dtype | None = None,
) -> Tensor:
    """Take one optimizer step on one batch and return its mean loss, a detached number on the batch's device.

    `inputs` and `labels` are batch-first, `[samples, ...]`. `compute_loss(outputs, labels)` returns the
    *mean* over the samples it is given. With `parts` above 1 the batch goes through the model in that many
    micro-batches (fewer if it has fewer samples), each loss weighted by its share of the samples: the
    gradients add up to that of the whole batch, up to rounding, also where the parts are unequal. (Batch
    norm still sees micro-batches, and dropout draws once for each.)

    Gradients are cleared, accumulated, unscaled, clipped to a global 2-norm of at most `clip_norm`, and
    used, in that order; clipping scaled gradients would cut them to nothing (PyTorch, "Automatic Mixed
    Precision examples", section "Gradient clipping"). `scaler` scales the loss for float16,
    `autocast_dtype` runs model and loss under autocast. A scaler skips the update of a batch whose
    gradients are not finite.

    A float16 loss is returned as float32. The learning-rate schedule is not stepped here. Raises
    `ValueError` if `parts < 1`, `clip_norm <= 0`, the batch is empty or has another number of labels, or
    `compute_loss` does not return a single number.
    """
    samples = _checked_samples(inputs, labels, parts, clip_norm)
    optimizer.zero_grad(set_to_none=True)
    mean_loss: Tensor | None = None
    pieces = min(parts, samples)
    for part_inputs, part_labels in zip(
        inputs.tensor_split(pieces), labels.tensor_split(pieces), strict=True
    ):
        with _autocast(inputs.device, autocast_dtype):
            loss = compute_loss(model(part_inputs), part_labels)
        if not isinstance(loss, Tensor) or loss.dim() != 0:
            shape = list(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
            raise ValueError(
                f"compute_loss must return one number, the mean over the samples, but returned {shape}"
            )
        # A float16 loss times the scaler's factor of 65536 would overflow, and sums of parts would lose digits.
        loss = loss.to(torch.promote_types(loss.dtype, torch.float32)) * (part_inputs.shape[0] / samples)
        torch.autograd.backward(loss if scaler is None else scaler.scale(loss))
        mean_loss = loss.detach() if mean_loss is None else mean_loss + loss.detach()
    assert mean_loss is not None  # there is at least one piece
    _use_gradients(optimizer, clip_norm, scaler)
    return mean_loss


def _use_gradients(
    optimizer: torch.optim.Optimizer, clip_norm: float | None, scaler: GradScaler | None
) -> None:
    # Always unscale here, even where nothing is clipped. A fused optimizer would otherwise divide by the
    # scale inside its kernel (torch/amp/grad_scaler.py, `_step_supports_amp_scaling`), and hooks before the
    # step, which record the gradients, would see them 65536 times too large.
    if scaler is not None:
        scaler.unscale_(optimizer)
    if clip_norm is not None:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, clip_norm)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()


def _checked_samples(inputs: Tensor, labels: Tensor, parts: int, clip_norm: float | None) -> int:
    if parts < 1:
        raise ValueError(f"parts is {parts}: choose 1 or more micro-batches")
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm is {clip_norm}: choose a number above 0, or None for no clipping")
    if inputs.dim() == 0 or labels.dim() == 0 or inputs.shape[0] != labels.shape[0] or inputs.shape[0] == 0:
        raise ValueError(
            "expected a batch-first batch with one label for each sample, "
            f"got inputs {list(inputs.shape)} and labels {list(labels.shape)}"
        )
    return inputs.shape[0]


def _autocast(device: torch.device, dtype: torch.dtype | None) -> AbstractContextManager[object]:
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype=dtype)
