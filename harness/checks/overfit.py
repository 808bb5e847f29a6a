"""Trains on one batch over and over, with the experiment's own optimizer; dropout, weight decay and AUGMENT are off.

A network, loss and optimizer that work bring the loss of one batch below 0.01 nats within a few dozen steps
(Karpathy, "A Recipe for Training Neural Networks", 2019, "overfit one batch"); a regression counts as learnt
at a tenth of the variance of its targets. The check makes 120 steps, and up to 480 while the loss still
falls. `stalls` means that more data or more steps will not help. `diverges` means that the updates make it
worse. The level of the curve says something too: ln 10 = 2.303 is a guess among ten classes.

Sources of the bounds: a run that still falls brings the loss of the second half of its steps below 0.75 of
the first half's (sound runs that need more than 120 steps: 0.31 at most; broken ones: 0.85 at least). A loss
of 100 times the first one has blown up (healthy: below 25; broken: 140 to 3,000).
"""

import math

import torch
from torch import nn

from harness.checks.core.finding import Cell, Check, Finding, consequence, short, sound
from harness.checks.core.subject import Subject
from harness.checks.first_loss import constant_guess
from harness.run.experiment import disable_dropout
from harness.run.guardrails import Guardrails

CHECK = Check(
    order=10,
    question="Can it learn one batch by heart?",
    minutes=2,
    outcomes=(
        sound("reaches", "Network, loss, gradients and optimizer can learn one batch.", "data", "modes"),
        consequence(
            "stalls",
            "Something between a batch and its update keeps the loss up. More data or steps will not help.",
            "data",
            "first_loss",
        ),
        consequence(
            "diverges",
            "The updates make the loss worse: they are too long, or they do not follow the gradient of this batch.",
            "lr_find",
            "gradients",
        ),
    ),
)
STEPS, MOST_STEPS = 120, 480
FALLING = 0.75
TARGET, REGRESSION_TARGET = 0.01, 0.1
BLOW_UP = 100.0


def measure(subject: Subject) -> Finding:
    """Train on the first batch until the loss reaches the target, diverges, or the steps are spent."""
    trial = subject.trial(disable_augment=True, steps=MOST_STEPS, adapt=_unregularized)
    inputs, labels = trial.inputs[: trial.batch_size], trial.labels[: trial.batch_size]
    target = REGRESSION_TARGET * constant_guess(labels) if labels.is_floating_point() else TARGET
    losses: list[float] = []
    guardrails, rises, allowed = Guardrails(), False, STEPS
    for record in trial.records(trial.prepare(inputs, labels) for _ in range(MOST_STEPS)):
        losses.append(float(record["loss"]))
        rises = rises or any(finding.kind == "loss rise" for finding in guardrails.check(record))
        if losses[-1] <= target or not math.isfinite(losses[-1]):
            break
        if len(losses) == allowed:
            if rises or not _falls(losses):
                break
            allowed *= 2
    highest = max(losses, key=lambda loss: math.inf if math.isnan(loss) else loss)
    lowest = min(filter(math.isfinite, losses), default=None)
    reached_at = len(losses) - 1 if losses[-1] <= target else None
    if reached_at is not None:
        outcome, summary = "reaches", f"loss {short(losses[-1])} at step {reached_at}, target {short(target)}"
    elif rises or not highest <= BLOW_UP * losses[0]:
        outcome = "diverges"
        summary = f"first loss {short(losses[0])}, highest {short(highest)} in {len(losses)} steps"
    else:
        outcome = "stalls"
        summary = f"lowest loss {short(lowest)} in {len(losses)} steps, target {short(target)}"
    figures: dict[str, Cell] = {
        "first loss": losses[0],
        "lowest loss": lowest,
        "highest loss": highest,
        "last loss": losses[-1],
        "target": target,
        "reached at step": reached_at,
    }
    return Finding(outcome, summary, figures)


def _falls(losses: list[float]) -> bool:
    return min(losses) < FALLING * min(losses[: len(losses) // 2])


def _unregularized(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    disable_dropout(model)
    for group in optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
