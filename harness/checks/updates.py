"""Compare the gradient that each update uses with the gradient of the loss, and compare how both move the weights.

For each of the first six updates, the check computes a reference: the gradient of `compute_loss` on a copy of the
network, with the same weights, the same batch and the same dropout. If `train_step` openly minimizes and returns
another loss, for example for distillation, the reference is the gradient of its own backward passes. The check reports
four values:

- `times the length`: the length of the gradient that the update uses, divided by the length of the reference. A value
below 1 is correct, because the step may clip or divide the gradient, or average it over accumulated batches. A value
above 1 is a fault: the gradient is a sum, or it still contains the factor of a scaler.

- `off its direction`: the share of the gradient that does not point in the direction of the reference. This share is
large if the gradient contains earlier batches or was changed after the backward pass.

- `off what clipping left`: the factor between the gradient that `clip_grad_norm_` left and the gradient that the update
uses. If the update uses a longer gradient that exceeds the bound, this gradient was not clipped. If it uses a shorter
gradient, the gradient was clipped before the factor of the scaler was removed.

- `off the optimizer's move`: how far the weights are from the weights that a copy of the optimizer reaches with the
same gradient. Pruned weights may stay zero.

An update that a gradient scaler skips does not count.
"""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad

from harness.checks.core.finding import Finding, short
from harness.checks.core.subject import (
    Gradients,
    Subject,
    Trial,
    as_vector,
    disable_unheld_gradients,
    fresh_gradients,
    minimizes_another_loss,
    reference_gradients,
    used_gradients,
    worst,
)

# figure                   | healthy  | broken  | bound             | source
# times the length         | 1.000    | 65536   | LONGER 1.1        | a gradient that keeps the factor of a scaler
# off its direction        | <= 0.001 | >= 0.68 | OFF_DIRECTION 0.1 | gradients of earlier batches
#                          | 1e-7     | 0.36    |                   | healthy: float32; broken: unscaled float16
# off what clipping left   | 1.00000  |         | OFF_CLIP 1.1      | a fault makes the factor far larger
# off the optimizer's move | 0        |         | OFF_MOVE 0.01     | equal bit by bit
#
# Measured over the correct variants of all experiments. The largest direction error of a healthy update, 0.001, occurs
# in float16.
UPDATES = 6
LONGER = 1.1
OFF_CLIP = 1.1
OFF_DIRECTION = 0.1
OFF_MOVE = 0.01
MOST_ACCUMULATED = 8  # an update may accumulate the gradients of this many batches


def measure(subject: Subject) -> Finding:
    """Make the first updates of the run, and compare each with the update that the loss requires."""
    trial = subject.trial()
    disable_unheld_gradients(trial)
    lengths: list[float] = []
    directions: list[float] = []
    moves: list[float] = []
    clips: list[float] = [1.0]
    waiting: list[Gradients] = []
    another = minimizes_another_loss(subject)
    with used_gradients(trial.model) as used, fresh_gradients(trial.model) as fresh, _clippings() as clippings:
        for inputs, labels in trial.batches(UPDATES * MOST_ACCUMULATED):
            waiting.append(reference_gradients(trial.model, trial.experiment.compute_loss, inputs, labels))
            fresh.clear()
            clippings.clear()
            before = copy.deepcopy((trial.model, trial.optimizer))
            used.clear()
            trial.step(inputs, labels)
            if another:
                waiting[-1] = _unscaled_gradients(trial, fresh)
            squares = {id(p): _square(used[name]) for name, p in trial.model.named_parameters() if name in used}
            off_clip = [one.off(squares) for one in clippings]
            resting = [name for name in used if name.startswith(trial.experiment.frozen)]
            for name in resting:  # no optimizer clears the gradients of parameters that it does not hold
                del used[name]
            if not used:
                continue
            own = as_vector(used, waiting[0])
            if bool(own.isfinite().all()):
                expected = torch.stack([as_vector(one, waiting[0]) for one in waiting]).mean(dim=0)
                length, direction = _compare(own, expected)
                lengths.append(length)
                directions.append(direction)
                clips += off_clip
                moves.append(_off_move(trial, *before, dict(used)))
            waiting.clear()
            if len(lengths) == UPDATES:
                break
    if not lengths:
        return Finding("none", "no update with a finite gradient", {})
    longest, direction, clip, move = map(worst, (lengths, directions, clips, moves))
    outcome = _outcome(longest, direction, clip, move)
    more = f", off by {short(clip)} from the clipped gradient" if outcome == "clips-another" else ""
    return Finding(
        outcome,
        f"gradient {short(longest)} times as long as expected, direction off by {short(direction)},"
        f" move off by {short(move)}{more}",
        {
            "times the length": longest,
            "off its direction": direction,
            "off what clipping left": clip,
            "off the optimizer's move": move,
        },
    )


@dataclass(frozen=True)
class _Clipping:
    """A call of `clip_grad_norm_`: its bound, the norm before the call, and each gradient's squared norm after it."""

    bound: float
    found: float
    left: dict[int, float]

    def off(self, used: dict[int, float]) -> float:
        """Return the factor between the clipped gradient and the gradient of an update (given as squared norms)."""
        both = self.left.keys() & used.keys()
        norm, left = (math.sqrt(sum(squares[one] for one in both)) for squares in (used, self.left))
        if not norm:
            return 1.0
        longer = norm / max(left, self.bound) if self.found else math.inf  # clipped before there was a gradient
        return max(longer, left / norm if self.found > self.bound else 1.0, 1.0)


@contextmanager
def _clippings() -> Iterator[list[_Clipping]]:
    """Yield a list that records calls of `clip_grad_norm_` under any name: for each parameter, the last call."""
    noted: list[_Clipping] = []
    clip = clip_grad._clip_grads_with_norm_

    def record_clipping(
        parameters: list[nn.Parameter], max_norm: float, total_norm: Tensor, *rest: Any, **more: Any
    ) -> None:
        clip(parameters, max_norm, total_norm, *rest, **more)
        left = {id(one): 0.0 if one.grad is None else _square(one.grad) for one in parameters}
        noted[:] = [one for one in noted if not one.left.keys() & left.keys()]
        noted.append(_Clipping(float(max_norm), float(total_norm), left))

    with patch.object(clip_grad, "_clip_grads_with_norm_", record_clipping):  # called by clip_grad_norm_
        yield noted


def _square(gradient: Tensor) -> float:
    return float(gradient.double().square().sum())


def _unscaled_gradients(trial: Trial, fresh: Gradients) -> Gradients:
    """Return the gradients that the backward passes of a step added, without the factor of a scaler."""
    scale = math.prod(scaler.get_scale() for scaler in trial.experiment.scalers().values())
    return {name: gradient / scale for name, gradient in fresh.items()}


def _outcome(length: float, direction: float, clip: float, move: float) -> str:
    if not direction <= OFF_DIRECTION:
        return "other-gradient"
    if not length <= LONGER:
        return "longer"
    if not clip <= OFF_CLIP:
        return "clips-another"
    return "follows" if move <= OFF_MOVE else "other-move"


def _compare(used: Tensor, expected: Tensor) -> tuple[float, float]:
    """Return how many times as long as expected a gradient is, and which share has not the expected direction."""
    length, square = float(used.norm()), float(expected @ expected)
    if not length:
        return 0.0, 0.0
    factor = float(used @ expected) / square if square else 0.0
    return abs(factor), float((used - max(factor, 0.0) * expected).norm()) / length


@torch.no_grad()
def _off_move(trial: Trial, model: nn.Module, optimizer: torch.optim.Optimizer, used: Gradients) -> float:
    """Return the distance of the weights from the result of a copied optimizer, over the length of its update."""
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.grad = used[name].clone() if name in used else None
    optimizer.step()
    off, move = 0.0, 0.0
    for (name, expected), found in zip(model.named_parameters(), trial.model.parameters(), strict=True):
        pruned = (start[name] == 0) & (found == 0) if found.dim() > 1 else torch.zeros_like(found, dtype=torch.bool)
        off += float((found - expected).double().masked_fill(pruned, 0.0).square().sum())
        move += float((expected - start[name]).double().square().sum())
    return math.sqrt(off / move) if move else math.inf if off else 0.0
