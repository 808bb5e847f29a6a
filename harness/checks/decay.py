"""Make the same step with and without weight decay, and measure how the decay alone changes the weights.

Both steps are made on copies, from the weights after 10 steps of the run. They use the same gradient of one batch, and
the learning rate with which the optimizer was built (or the current one, if it is higher). The check reports three
values:

- `taken by a step` is the share by which the decay shrinks the weight matrices. For SGD and AdamW, this share is the
learning rate times the weight decay.

- `of the move` is the length of this shrinkage divided by the length of the step without decay.

- `in proportion` is 1 if each weight loses the same share of its value. Adam with `weight_decay` adds the decay to the
gradient, then divides the sum by the usual size of the gradient (Loshchilov and Hutter, arXiv:1711.05101). So where
gradients are small, each weight loses about the learning rate in a step, even if the weight is small. Then `in
proportion` falls below 0.9.

Weights without a gradient do not count, for example the weights of a pixel that is always black.
"""

import copy

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Gradients, Subject, Trial, reference_gradients

# figure                     | healthy | broken     | bound            | source
# decay / step without decay | <= 0.06 | >= 0.086   | OF_MOVE 0.075    | Adam, decay 0.1; SGD, 0.5: 0.17
# share of weights in a step | < 0.002 |            | TAKEN 0.002      | below 0.002: no effect in a short run
#                            |         | 0.02       | SURELY 0.02      | it halves the weights in 35 steps
# proportion, coupled        |         | 0.4 to 0.8 | PROPORTIONAL 0.9
# proportion, drifts         |         | 0.02       | TOWARDS_ZERO 0.3 | equal amount taken from each weight
#
# Measured over ten seeds. The healthy values include the usual decays of SGD, Adam, AdamW and RMSprop, and decays up to
# ten times as strong. With Adam and a decay of 0.1, the last loss is four times as high as without decay. With SGD and
# a decay of 0.5, the network learns almost nothing.
STEPS = 10
TAKEN, OF_MOVE = 2e-3, 0.075
SURELY = 0.02
PROPORTIONAL, TOWARDS_ZERO = 0.9, 0.3


def measure(subject: Subject) -> Finding:
    """Make some steps of the run, then one more step on copies, with and without decay; compare the weights."""
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
    more = f"; its cosine with the weights is {short(proportion)}" if outcome in ("drifts", "coupled") else ""
    return Finding(
        outcome,
        f"the decay of a step takes {short(share)} of the weights, {short(of_move)} of the gradient's move{more}",
        figures,
    )


def _after_a_step(trial: Trial, gradients: Gradients, decays: bool) -> Tensor:
    model, optimizer = copy.deepcopy((trial.model, trial.optimizer))
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name].clone() if name in gradients else None
    for group in optimizer.param_groups:
        # During a warm-up, the current learning rate is close to zero.
        group["lr"] = max(group["lr"], group.get("initial_lr", 0.0))
        group["weight_decay"] = group.get("weight_decay", 0.0) if decays else 0.0
    optimizer.step()
    return _weights(model, gradients)


def _weights(model: nn.Module, gradients: Gradients) -> Tensor:
    """Return all matrix entries with a non-zero gradient as one float64 vector, or all entries if there are none."""
    matrices = [(p.detach(), gradients[n]) for n, p in model.named_parameters() if p.dim() > 1 and n in gradients]
    dead = not any(own.any() for _, own in matrices)
    return torch.cat([torch.zeros(1).double(), *(matrix[(own != 0) | dead].double() for matrix, own in matrices)])
