"""Small measurements of tensors and gradients, under the names that the field uses."""

import math
from collections.abc import Iterable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.run.recorder import gradient_norm

QUANTILES = {"1": 0.01, "10": 0.1, "50": 0.5, "90": 0.9, "99": 0.99}
# Sorting takes most of the time of a measurement, so it reads at most this many entries, at equal distances.
MOST_SORTED = 2048


def assert_finite(values: Tensor, name: str) -> None:
    """Raise `FloatingPointError` that names the first entry that is NaN or infinite, if there is one."""
    if (said := describe_non_finite(values)) is not None:
        raise FloatingPointError(f"{name}: {said}")


def describe_non_finite(values: Tensor) -> str | None:
    """Return how many entries are NaN or infinite and where the first one is, or None if all are finite."""
    bad = ~torch.isfinite(values.detach())
    count = int(bad.sum())
    if not count:
        return None
    place = tuple(bad.nonzero()[0].tolist())
    return f"{count} of {values.numel()} entries are not finite, the first at {place}: {values[place].item()}"


def stable_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of logits, (B, C) or (B, T, C), which is finite for all finite logits.

    labels: class indices, (B,) or (B, T), of which -100 is ignored, or soft labels with the shape of the logits. It is
    `logsumexp(z) - z[label]`, which has no logarithm of a probability that may be 0.
    """
    labels = labels.flatten(0, -2) if labels.is_floating_point() else labels.flatten()
    return F.cross_entropy(logits.flatten(0, -2), labels)


def compute_global_grad_norm(parameters: Iterable[Tensor]) -> float:
    """Return the 2-norm of all gradients together. Parameters without a gradient count as 0."""
    return math.hypot(*(float(gradient_norm(p.grad)) for p in parameters if p.grad is not None))


def compute_global_norm(tensors: Iterable[Tensor]) -> float:
    """Return the 2-norm of all tensors together."""
    return math.hypot(*(float(gradient_norm(tensor)) for tensor in tensors))


def activation_quantiles(values: Tensor) -> dict[str, float | None]:
    """Return the quantiles 1, 10, 50, 90 and 99 % of the finite entries, each None if there are none.

    values: activations or gradients of any shape. Of more than `MOST_SORTED` entries, entries at equal distances are
    read. Each quantile is one of the entries.
    """
    flat = values.detach().reshape(-1)
    flat = flat[:: max(1, math.ceil(flat.numel() / MOST_SORTED))].float().cpu()
    entries = flat.numpy()
    finite = np.isfinite(entries)
    entries = np.sort(entries if finite.all() else entries[finite])
    if not entries.size:
        return dict.fromkeys(QUANTILES)
    return {name: float(entries[round(share * (entries.size - 1))]) for name, share in QUANTILES.items()}
