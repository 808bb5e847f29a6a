"""Cross-entropy written out from its formula, and the loss of a model that guesses."""

import math
from typing import Literal

import torch
from torch import Tensor


def stable_cross_entropy(
    logits: Tensor, labels: Tensor, reduction: Literal["mean", "sum", "none"] = "mean"
) -> Tensor:
    """Return the cross-entropy of `logits` `[samples, classes]` against `labels` `[samples]`, in nats.

    The loss of a sample is `logsumexp(z) - z[label]`. With `m = max(z)` taken off first it is
    `log(sum(exp(z - m))) - (z[label] - m)`: every exponent is at most 0, so nothing overflows, however large
    the logits are (Goodfellow, Bengio and Courville, Deep Learning, 2016, section 4.1). float16 and bfloat16
    logits are computed and returned as float32; float32 and float64 keep their dtype. `labels` are class
    indices, of any integer dtype. "mean" and "sum" give one number, "none" gives `[samples]`.

    Raises `ValueError` for other shapes or dtypes, for an unknown reduction, and for the mean of no samples;
    a label outside `0..classes-1` is refused by torch's indexing.
    """
    if logits.dim() != 2 or labels.dim() != 1 or logits.shape[0] != labels.shape[0] or logits.shape[1] == 0:
        raise ValueError(
            "expected logits [samples, classes] and labels [samples], "
            f"got {list(logits.shape)} and {list(labels.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise ValueError(f"labels must be class indices (torch.int64), got {labels.dtype}")
    if not logits.is_floating_point():
        raise ValueError(f"logits must be floating-point numbers, got {logits.dtype}")
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32))
    # The maximum cancels out of the formula, so no gradient has to flow through it.
    shifted = scores - scores.detach().amax(dim=1, keepdim=True)
    of_label = shifted.gather(1, labels.long().unsqueeze(1)).squeeze(1)
    losses = shifted.exp().sum(dim=1).log() - of_label
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction != "mean":
        raise ValueError(f'reduction is {reduction!r}: choose "mean", "sum" or "none"')
    if len(losses) == 0:
        raise ValueError("the mean loss of no samples does not exist: pass at least one sample")
    return losses.mean()


def chance_loss(classes: int) -> float:
    """Return `ln(classes)`, in nats: the cross-entropy of a model that gives each class the same probability.

    A healthy classifier starts near it, and one that learns nothing stays there. Raises `ValueError` below 1.
    """
    if classes < 1:
        raise ValueError(f"there are {classes} classes: a classifier needs 1 or more")
    return math.log(classes)


def constant_guess(targets: Tensor) -> float:
    """Return the mean squared error of a model that always puts out the mean: the variance of all entries.

    What `chance_loss` is to a classifier, this is to a regression, in the unit of its targets, squared.
    """
    return float(targets.double().var(correction=0))
