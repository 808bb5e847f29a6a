"""Outputs that answer right or wrong for a batch, in place of a network's own outputs."""

from typing import Any

from torch import Tensor
from torch.nn.functional import one_hot

_SMALL = 0.25  # a logit on the right side of 0, but not of 0.5


def answers_for(outputs: Any, labels: Any, *, are_right: bool, are_shares: bool) -> Tensor | None:
    """Return outputs of the same shape that answer right or wrong, or None if it is not clear which outputs do.

    outputs: the outputs of a network, (N, C) for C classes, or (N,) or (N, 1) for two classes. labels: the second part
    of the batch, (N,) or (N, 1). are_shares: whether the outputs are probabilities and not logits.
    """
    if not isinstance(outputs, Tensor) or not isinstance(labels, Tensor) or not outputs.is_floating_point():
        return None
    size = outputs.size(0) if outputs.dim() else 0
    if not size or labels.numel() != size or outputs.dim() not in (1, 2):
        return None
    labels = labels.flatten().to(outputs.device)
    if outputs.dim() == 2 and outputs.size(1) > 1:
        if labels.is_floating_point() or not bool(((labels >= 0) & (labels < outputs.size(1))).all()):
            return None
        chosen = labels if are_right else (labels + 1) % outputs.size(1)
        scores = one_hot(chosen, outputs.size(1)).to(outputs.dtype)
        return scores if are_shares else (scores - 1) * 20
    if not bool(((labels == 0) | (labels == 1)).all()):
        return None
    signs = (2 * labels - 1).to(outputs.dtype) * (1 if are_right else -1)
    answer: Tensor = signs * _SMALL + (0.5 if are_shares else 0.0)
    return answer.view(outputs.shape)
