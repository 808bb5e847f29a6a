"""Makes the first 60 steps of the run three times: at its own learning rate, at a tenth and at a hundredth.

A run whose updates are too long learns far better at a lower rate, whether the rate is too high or the
gradients are too long. A sound run learns worse, or about as well.

Source of the bound: the best loss at a lower rate over the loss at its own, as medians of the last 10 steps.
Healthy experiments over eight seeds: 0.74 at least; updates that are too long: 0.19 at most; the bound is
0.3.
"""

import math
from statistics import median

import torch
from torch import nn

from harness.checks.core.finding import Check, Finding, Plot, consequence, short, sound
from harness.checks.core.subject import Subject
from harness.run.setup import Adapt

CHECK = Check(
    order=60,
    question="Does it learn better at a tenth of its learning rate?",
    minutes=3,
    outcomes=(
        sound("no-better", "Shorter steps learn no better: long updates are ruled out.", "gradients"),
        consequence(
            "better",
            "Shorter steps learn what its own steps do not: the updates are too long, by the rate or by the gradients.",
            "lr_find",
            "gradients",
        ),
    ),
)
STEPS = 60
LAST = 10
BETTER = 0.3
FACTORS = {"its own rate": 1.0, "a tenth": 0.1, "a hundredth": 0.01}


def measure(subject: Subject) -> Finding:
    """Make the first steps at each rate; the schedule scales with it."""
    losses: dict[str, list[float]] = {}
    for name, factor in FACTORS.items():
        trial = subject.trial(adapt=_scaled(factor))
        losses[name] = [float(trial.step(*batch)) for batch in trial.batches(STEPS)]
    levels = {name: level(values) for name, values in losses.items()}
    own, *lower = levels.values()
    ends = ", ".join(f"{short(last)} at {name}" for name, last in levels.items())
    return Finding(
        f"the first {STEPS} steps of the run, three times",
        "better" if min(lower) < BETTER * own else "no-better",
        f"loss after {STEPS} steps: {ends}",
        {f"loss at the end, {name}": last for name, last in levels.items()},
        plots=(Plot("Loss at three learning rates", "loss", losses),),
    )


def level(losses: list[float]) -> float:
    """Return the median of the last losses, infinity if one of them is not finite."""
    last = losses[-LAST:]
    return median(last) if all(map(math.isfinite, last)) else math.inf


def _scaled(factor: float) -> Adapt:
    def adapt(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = factor * group["lr"]

    return adapt
