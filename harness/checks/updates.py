"""Compares the gradient that each update uses with the gradient of the loss, and the weights' move with both.

For the first six updates, the check computes the gradient of `compute_loss` itself, on a copy of the network with the
same weights, batch and dropout. A step that openly minimizes another loss, such as a distillation, is compared with the
gradient of its own backward passes. The optimizer may use a shorter one: clipped, divided, averaged over accumulated
batches. It may not use a longer one (`times the length` above 1: summed, still scaled) or one of another direction
(`off its direction`: left over from earlier batches, changed after the backward pass). If `clip_grad_norm_` leaves a
gradient of some norm, the update must use that one: a longer one, beyond the bound too, was not clipped, and a shorter
one was clipped while it was scaled (`off what clipping left`, as a factor). Then a copy of the optimizer steps with the
gradient that was used: the weights must move as it moves them, but for pruned ones, which stay zero. An update that a
gradient scaler skips does not count.

Sources of the bounds, over the sound variants of all experiments: healthy updates are as long as they should be to
four digits (1.1), 0.001 off their direction in float16 and 1e-7 in float32 (0.1), and move the weights to the bit
(0.01). Faults: left-over gradients are 0.68 off and more, unscaled float16 0.36, and a factor of a scaler is 65536.
What clipping leaves is what an update uses to six digits; a fault makes it many times as long or as short (1.1).
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
    fresh_gradients,
    minimizes_another_loss,
    reference_gradients,
    rest_unheld,
    used_gradients,
    worst,
)

UPDATES = 6
LONGER = 1.1
OFF_CLIP = 1.1
OFF_DIRECTION = 0.1
OFF_MOVE = 0.01
MOST_ACCUMULATED = 8  # batches for one update


def measure(subject: Subject) -> Finding:
    """Make the first updates of the run, and compare each with the one that the loss asks for."""
    trial = subject.trial()
    rest_unheld(trial)
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
            for name in resting:  # no optimizer has to clear what it does not hold
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
    return Finding(
        _outcome(longest, direction, clip, move),
        f"{short(longest)} times the length, {short(direction)} off the direction, {short(move)} off the move",
        {
            "times the length": longest,
            "off its direction": direction,
            "off what clipping left": clip,
            "off the optimizer's move": move,
        },
    )


@dataclass(frozen=True)
class _Clipping:
    """A call of `clip_grad_norm_`: its bound, the norm that it found, and the square of what it left by parameter."""

    bound: float
    found: float
    left: dict[int, float]

    def off(self, used: dict[int, float]) -> float:
        """Return by which factor the gradient of an update, squares by parameter, differs from what clipping left."""
        both = self.left.keys() & used.keys()
        norm, left = (math.sqrt(sum(squares[one] for one in both)) for squares in (used, self.left))
        if not norm:
            return 1.0
        longer = norm / max(left, self.bound) if self.found else math.inf  # it found nothing to clip
        return max(longer, left / norm if self.found > self.bound else 1.0, 1.0)


@contextmanager
def _clippings() -> Iterator[list[_Clipping]]:
    """Collect the calls of `clip_grad_norm_`, under whatever name it was imported; of each parameter the last one."""
    noted: list[_Clipping] = []
    clip = clip_grad._clip_grads_with_norm_

    def record_clipping(
        parameters: list[nn.Parameter], max_norm: float, total_norm: Tensor, *rest: Any, **more: Any
    ) -> None:
        clip(parameters, max_norm, total_norm, *rest, **more)
        left = {id(one): 0.0 if one.grad is None else _square(one.grad) for one in parameters}
        noted[:] = [one for one in noted if not one.left.keys() & left.keys()]
        noted.append(_Clipping(float(max_norm), float(total_norm), left))

    with patch.object(clip_grad, "_clip_grads_with_norm_", record_clipping):  # clip_grad_norm_ calls it
        yield noted


def _square(gradient: Tensor) -> float:
    return float(gradient.double().square().sum())


def _unscaled_gradients(trial: Trial, fresh: Gradients) -> Gradients:
    """Return what the backward passes of a step added, without the factor of a scaler."""
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
    """Return how many times as long a gradient is as the expected one, along it, and how far it is off that line."""
    length, square = float(used.norm()), float(expected @ expected)
    if not length:
        return 0.0, 0.0
    factor = float(used @ expected) / square if square else 0.0
    return abs(factor), float((used - max(factor, 0.0) * expected).norm()) / length


@torch.no_grad()
def _off_move(trial: Trial, model: nn.Module, optimizer: torch.optim.Optimizer, used: Gradients) -> float:
    """Return how far the weights are from where a copy of the optimizer takes a copy of the network, in its moves."""
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
