"""Takes one step twice, with the weight decay and without it, and measures what the decay alone does to the weights.

The step is made after 10 steps of the run, on copies, with the gradient of a batch, at the highest rate that the
optimizer was built with. `taken by a step` is the share by which the decay shrinks the weight matrices: the rate times
the weight decay for SGD and AdamW. `of the move` is that length over the move that the gradient makes. Adam with
weight_decay adds the decay to the gradient, and then divides both by the size of the gradient (Loshchilov and Hutter,
arXiv:1711.05101): where gradients are small, it takes about the rate from each weight, however small the weight is.
`in proportion` tells the two apart: 1 if each weight loses the same share. Entries without a gradient (a pixel that is
always black) do not count.

Sources of the bounds, over ten seeds: the usual decays of SGD, Adam, AdamW and RMSprop, up to ten times too strong,
make at most 0.06 of the gradient's move; Adam with a decay of 0.1, whose loss ends four times as high, 0.086 and more,
SGD with 0.5, which learns next to nothing, 0.17 (0.075). A decay that takes less than 1 in 500 a step leaves a short
run alone, whatever the gradients are (0.002); one that halves the weights in 35 steps does not (0.02). Coupled decays
are 0.4 to 0.8 in proportion (0.9); one that takes the same from each weight, positive or negative, 0.02 (0.3).
"""

import copy

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Gradients, Subject, Trial, reference_gradients

STEPS = 10
TAKEN, OF_MOVE = 2e-3, 0.075
SURELY = 0.02
PROPORTIONAL, TOWARDS_ZERO = 0.9, 0.3


def measure(subject: Subject) -> Finding:
    """Make some steps of the run, then one more on copies, with and without decay."""
    trial = subject.trial()
    if not any(group.get("weight_decay") for group in trial.optimizer.param_groups):
        return Finding("no-decay", "weight_decay is 0", {"weight decay": 0.0})
    batches = trial.batches()
    for step in range(STEPS):
        loss = trial.step(*next(batches))
        if not step and not bool(loss.isfinite()):
            return Finding("not-finite", "the first loss is not finite", {})
    gradients = reference_gradients(trial.model, trial.experiment.compute_loss, *next(batches))
    start = _weights(trial.model, gradients)
    decayed, plain = (_after_a_step(trial, gradients, decays) for decays in (True, False))
    size, taken = float(start.norm()), plain - decayed
    along, length, move = float(taken @ start) / max(size, 1e-30), float(taken.norm()), float((plain - start).norm())
    share, of_move = along / max(size, 1e-30), along / max(move, 1e-30)
    proportion = along / length if length else 1.0
    outcome = "slight"
    if length > OF_MOVE * move and proportion < TOWARDS_ZERO:
        outcome = "drifts"
    elif not (share <= TAKEN or of_move <= OF_MOVE) or share > SURELY:
        outcome = "excessive" if proportion > PROPORTIONAL else "coupled"
    figures: dict[str, Cell] = {"taken by a step": share, "of the move": of_move, "in proportion": proportion}
    return Finding(outcome, f"a step takes {short(share)} of the weights, {short(of_move)} of its move", figures)


def _after_a_step(trial: Trial, gradients: Gradients, decays: bool) -> Tensor:
    model, optimizer = copy.deepcopy((trial.model, trial.optimizer))
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name].clone() if name in gradients else None
    for group in optimizer.param_groups:
        # A warm-up begins near zero.
        group["lr"] = max(group["lr"], group.get("initial_lr", 0.0))
        group["weight_decay"] = group.get("weight_decay", 0.0) if decays else 0.0
    optimizer.step()
    return _weights(model, gradients)


def _weights(model: nn.Module, gradients: Gradients) -> Tensor:
    """Return the entries of all matrices that have a gradient, as one float64 vector; all if none has one."""
    matrices = [(p.detach(), gradients[n]) for n, p in model.named_parameters() if p.dim() > 1 and n in gradients]
    dead = not any(own.any() for _, own in matrices)
    return torch.cat([torch.zeros(1).double(), *(matrix[(own != 0) | dead].double() for matrix, own in matrices)])
