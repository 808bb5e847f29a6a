"""Evaluate a network in the harness, independently of the experiment's own `evaluate`."""

import math

import torch
from torch import Tensor, nn

from harness.run.experiment import Experiment
from harness.run.metrics_log import Record

IGNORED = -100  # examples with this label do not count for loss and accuracy, as in torch.nn.functional.cross_entropy


def is_classification(outputs: Tensor, labels: Tensor) -> bool:
    """Return whether outputs are class scores, (B, C) or (B, T, C), and labels are class indices, (B,) or (B, T)."""
    by_row = 2 <= outputs.dim() <= 3 and outputs.shape[-1] > 1 and outputs.shape[:-1] == labels.shape
    return by_row and not labels.is_floating_point()


@torch.no_grad()
def loss_and_accuracy(
    experiment: Experiment, model: nn.Module, inputs: Tensor, labels: Tensor
) -> tuple[float, float | None]:
    """Return loss and accuracy (None for a regression) of a network. This does not change its train or eval mode."""
    outputs = model(inputs)
    accuracy = None
    if is_classification(outputs, labels):
        accuracy = (outputs.argmax(dim=-1) == labels)[labels != IGNORED].double().mean().item()
    return experiment.compute_loss(outputs, labels).item(), accuracy


def evaluate_in_eval_mode(experiment: Experiment, model: nn.Module, inputs: Tensor, labels: Tensor) -> Record:
    """Evaluate a network in eval mode.

    Return `val_loss_eval_mode` and `val_accuracy_eval_mode` (None for a regression). The loss is NaN if the network
    cannot read the inputs, for example because `evaluate` must prepare them first.
    """
    model.eval()
    try:
        loss, accuracy = loss_and_accuracy(experiment, model, inputs, labels)
    except (RuntimeError, ValueError, IndexError):
        loss, accuracy = math.nan, None
    return {"val_loss_eval_mode": loss, "val_accuracy_eval_mode": accuracy}


def statistics_of(model: nn.Module) -> list[Tensor]:
    """Return the floating-point buffers of a network, such as running statistics.

    An evaluation must not change them.
    """
    return [buffer for buffer in model.buffers() if buffer.is_floating_point() and buffer.numel()]


def largest_change(before: list[Tensor], after: list[Tensor]) -> float:
    """Return the largest absolute change of an entry, or 0.0 if there are no entries."""
    # Do not subtract equal entries: a mask may contain -inf, and -inf minus -inf is NaN.
    changes = [
        torch.where(new == old, 0.0, (new - old).abs()).max().double() for old, new in zip(before, after, strict=True)
    ]
    return float(torch.stack(changes).max()) if changes else 0.0
