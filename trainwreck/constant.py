"""The loss of the best constant answer: of an answer that is the same for all examples."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

_LEAST = 0.02  # below this, nearly all targets are equal, and a constant answer is right


def loss_of_constant(name: str, targets: Sequence[Tensor], options: Mapping[str, Any]) -> float | None:
    """Return the mean loss of the best constant answer for these targets, or None if it is not known or near 0.

    name: of the loss in `torch.nn.functional`. For classes, this is the entropy of their shares in nats; for
    `mse_loss`, the variance of the targets; for `l1_loss`, their mean distance from the median. options: the further
    arguments of the loss.
    """
    if options.get("weight") is not None or options.get("pos_weight") is not None:
        return None
    if options.get("reduction", "mean") != "mean" or options.get("label_smoothing"):
        return None
    if name in ("cross_entropy", "nll_loss"):
        value = _of_classes(targets, int(options.get("ignore_index", -100)))
    elif any(not one.is_floating_point() or not one.dim() or not one.numel() for one in targets):
        return None
    elif name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
        shares = torch.cat([one.flatten(1) if one.dim() > 1 else one[:, None] for one in targets]).double().mean(0)
        value = float(-(torch.xlogy(shares, shares) + torch.xlogy(1 - shares, 1 - shares)).mean())
    elif name == "mse_loss":
        values = torch.cat([one.flatten(1) if one.dim() > 1 else one[:, None] for one in targets]).double()
        value = float(values.var(0, correction=0).mean())
    elif name == "l1_loss":
        values = torch.cat([one.flatten(1) if one.dim() > 1 else one[:, None] for one in targets]).double()
        value = float((values - values.median(0).values).abs().mean())
    else:
        return None
    return value if value > _LEAST else None


def _of_classes(targets: Sequence[Tensor], ignored: int) -> float:
    if any(one.is_floating_point() for one in targets):
        return 0.0
    labels = torch.cat([one.flatten() for one in targets])
    counts = labels[labels != ignored].unique(return_counts=True)[1].double()
    shares = counts / counts.sum()
    return float(-torch.xlogy(shares, shares).sum())
