"""Does it learn better at a tenth of its learning rate, or at a hundredth?"""

from dataclasses import dataclass
from statistics import median
from typing import Literal

import torch
from torch import nn

from harness.checks.evidence import Evidence, Line, Plot, Table, short
from harness.checks.subject import Subject
from harness.checks.workbench import Adapt

STEPS = 60
LAST = 10
FACTORS = (1.0, 0.1, 0.01)
# The best loss at a lower rate over that at its own, medians of the last 10 of 60 steps, over 8 seeds. Healthy: 0.74
# at least; a rate that is too high in effect: 0.19 at most.
BETTER = 0.3

Outcome = Literal["better", "no-better"]


@dataclass(frozen=True)
class LrTenth:
    """The losses of the first steps by the factor on every learning rate, and the rates of the optimizer's groups."""

    losses: dict[float, list[float]]
    rates: list[float]

    def level(self, factor: float) -> float:
        """Return the median loss of the last steps; infinite where one is not finite."""
        last = self.losses[factor][-LAST:]
        return median(last) if all(abs(loss) < float("inf") for loss in last) else float("inf")

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        best = min(self.level(factor) for factor in FACTORS[1:])
        return "better" if best < BETTER * self.level(1.0) else "no-better"


def measure(subject: Subject, *, steps: int = STEPS) -> LrTenth:
    """Make the first steps of the run at its own rate, a tenth and a hundredth; the schedule follows."""
    losses, rates = {}, []
    for factor in FACTORS:
        bench = subject.bench(adapt=_scaled(factor))
        if factor == 1.0:
            rates = [float(group.get("initial_lr", group["lr"])) for group in bench.optimizer.param_groups]
        batches = zip(range(steps), bench.batches(), strict=False)
        losses[factor] = [float(bench.step(*batch)) for _, batch in batches]
    return LrTenth(losses, rates)


def _scaled(factor: float) -> Adapt:
    def adapt(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = factor * group["lr"]

    return adapt


def show(measured: LrTenth) -> Evidence:
    """Return the three curves."""
    names = {1.0: "its own rate", 0.1: "a tenth", 0.01: "a hundredth"}
    steps = len(measured.losses[1.0])
    return Evidence(
        what=f"the first {steps} steps of the run, three times",
        outcome=measured.outcome,
        said="loss after {} steps: {}".format(
            steps, ", ".join(f"{short(measured.level(factor))} at {name}" for factor, name in names.items())
        ),
        figures={
            "learning rate": ", ".join(f"{rate:g}" for rate in dict.fromkeys(measured.rates)),
            **{f"loss at the end, {name}": measured.level(factor) for factor, name in names.items()},
        },
        tables=(
            Table(
                caption=f"Loss, first and median of the last {LAST}",
                columns=("learning rate", "first", "end"),
                rows=tuple(
                    (name, measured.losses[factor][0], measured.level(factor))
                    for factor, name in names.items()
                ),
            ),
        ),
        plots=(
            Plot(
                title="Loss at three learning rates",
                x_label="step",
                y_label="loss",
                lines=tuple(
                    Line(label=name, points=tuple(enumerate(measured.losses[factor])))
                    for factor, name in names.items()
                ),
                scale="log",
            ),
        ),
    )
