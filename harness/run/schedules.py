"""A learning-rate schedule with linear warm-up and cosine decay. It is stepped once a training step."""

import math
from dataclasses import dataclass

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def warmup_cosine(
    optimizer: Optimizer, *, warmup_steps: int, total_steps: int, final_fraction: float = 0.0
) -> LambdaLR:
    """Return a scheduler that multiplies each group's learning rate by the factor of the current step.

    Call its `step()` once after each training step. Let `w` be the number of warm-up steps, and `t` the number of all
    steps. The factor of step `s`, counted from 0, is

    - `(s + 1) / w` while `s < w`: linear from `1/w` to 1 (Goyal et al., arXiv:1706.02677, section 2.2);
    - `f + (1 - f) (1 + cos(pi (s - w) / (t - w))) / 2` while `s < t`, with `f = final_fraction`: from 1
      towards `f` (Loshchilov and Hutter, SGDR, arXiv:1608.03983, equation 5, one period);
    - `f` from then on.
    """
    if not 0 <= warmup_steps <= total_steps:
        raise ValueError(f"warmup_steps is {warmup_steps}: choose a number from 0 to {total_steps}")
    # LambdaLR stores the attributes of a callable object in a checkpoint, but cannot store a lambda. So each group gets
    # an object.
    factors = [_WarmupCosine(warmup_steps, total_steps, final_fraction) for _ in optimizer.param_groups]
    return LambdaLR(optimizer, list(factors))


@dataclass
class _WarmupCosine:
    """Computes the factor of each step. Checkpoints store the attributes of this object."""

    warmup_steps: int
    total_steps: int
    final_fraction: float

    def __call__(self, step: int) -> float:
        if step < self.warmup_steps:
            return (step + 1) / self.warmup_steps
        if step >= self.total_steps:
            return self.final_fraction
        progress = (step - self.warmup_steps) / (self.total_steps - self.warmup_steps)
        share = (1.0 + _cosine_of_half_turns(progress)) / 2.0
        return self.final_fraction + (1.0 - self.final_fraction) * share


def _cosine_of_half_turns(turns: float) -> float:
    """Return `cos(pi * turns)` for `turns` from 0 to 1, with the same bits on every machine.

    The last bit of `math.cos` depends on the C library and the processor, and one bit of a learning rate changes the
    hash of a checkpoint. This function uses a Taylor series, which needs only +, * and /. IEEE 754 defines their
    results exactly.
    """
    if turns > 0.5:
        return -_cosine_of_half_turns(1.0 - turns)
    angle = math.pi * turns
    square = angle * angle  # `** 2` would call the C library's pow, which also depends on the machine
    total = 1.0
    for order in range(
        24, 0, -2
    ):  # the last bits are right: for an angle up to pi/2, the first omitted term is below 1e-21
        total = 1.0 - total * square / (order * (order - 1))
    return total
