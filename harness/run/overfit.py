"""The first experiment to try on a model that does not learn: can it learn one batch by heart?"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.dropout import _DropoutNd


@dataclass(frozen=True)
class OverfitResult:
    """The loss of every step taken, and the step (from 0) whose loss was at most the target, or None."""

    losses: list[float]
    reached_at: int | None


def overfit_one_batch(step: Callable[[], float], max_steps: int, target: float = 0.01) -> OverfitResult:
    """Call `step` until the loss it returns is at most `target`, is not finite, or `max_steps` were taken.

    `step` trains once on the same batch and returns the loss in the unit of the loss function (nats for
    cross-entropy). A model, loss and optimizer that work drive it to about 0; where they do not, more data
    will not help (Karpathy, "A Recipe for Training Neural Networks", 2019, "overfit one batch"). Turn
    dropout and augmentation off first: they keep the loss up.

    Raises `ValueError` if `max_steps < 1`.
    """
    if max_steps < 1:
        raise ValueError(f"max_steps is {max_steps}: choose 1 or more")
    losses: list[float] = []
    for index in range(max_steps):
        losses.append(float(step()))
        if losses[-1] <= target:
            return OverfitResult(losses, index)
        if not math.isfinite(losses[-1]):
            break
    return OverfitResult(losses, None)


def disable_dropout(model: nn.Module) -> int:
    """Set every dropout probability in `model` to 0, in place, and return how many modules were changed.

    Covers all of `nn.Dropout*`, `nn.AlphaDropout` and `nn.FeatureAlphaDropout`, and the dropout inside
    `nn.RNN`, `nn.LSTM`, `nn.GRU` and `nn.MultiheadAttention`; not `F.dropout` called in a `forward`. A module
    whose probability is 0 already is not counted.
    """
    changed = 0
    for module in model.modules():
        if isinstance(module, _DropoutNd) and module.p != 0.0:
            module.p = 0.0
            changed += 1
        elif isinstance(module, nn.RNNBase | nn.MultiheadAttention) and module.dropout != 0.0:
            module.dropout = 0.0
            changed += 1
    return changed
