"""Can it learn one batch by heart, with everything off that keeps the loss up on purpose?"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from harness.checks.evidence import Evidence, Line, Plot, short
from harness.checks.subject import Subject
from harness.losses import constant_guess
from harness.run.experiment import disable_dropout
from harness.run.guardrails import EARLY_LOSS_RISE, LOSS_RISE, Levels
from harness.run.metrics_log import Record
from harness.run.recorder import Recorder

STEPS = 120
# Whoever is slow gets twice as many, and again, while the second half of the steps brought the lowest loss below this
# share of what it was. Sound runs that need more than 120 steps: 0.31 at most (Adam, SGD without momentum; one that
# takes thousands: 0.80); broken ones, which stay where they are: 0.85 at least.
FALLING = 0.75
MOST_STEPS = 480
TARGET = 0.01
# A regression's loss has a unit of its own: the target is this share of the loss of a constant guess.
REGRESSION_TARGET = 0.1
# A single loss that high is no hard batch: here it is always the same one. Healthy: below 25 (a regression whose last
# layer begins at zero; 1.0 for the classifiers); broken runs that blow up: 140 to 3,000 times the first loss.
BLOW_UP = 100.0

Outcome = Literal["reaches", "stalls", "diverges"]


@dataclass(frozen=True)
class Overfit:
    """The record of every step on one batch; `reached_at` counts steps from 0."""

    records: list[Record]
    target: float
    reached_at: int | None
    examples: int
    diverged: bool

    @property
    def losses(self) -> list[float]:
        """The loss of every step."""
        return [record["loss"] for record in self.records]

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.reached_at is not None:
            return "reaches"
        return "diverges" if self.diverged else "stalls"


def measure(subject: Subject, *, steps: int | None = None, examples: int | None = None) -> Overfit:
    """Train on the first batch over and over: dropout, weight decay and the constant AUGMENT off, its own optimizer.

    It is the training of `--overfit-batch`, with the weight decay off too. A network, loss and optimizer that work
    bring the loss below 0.01 nats within a few dozen steps (Karpathy, "A Recipe for Training Neural Networks", 2019);
    for a regression, below a tenth of the variance of its targets. "diverges" is what the guardrails call a rise. It
    gives up after `steps`, by default after 120, or up to 480 for a loss that still falls.
    """
    most = steps or MOST_STEPS
    bench = subject.bench(subject.experiment(overfit_batch=examples or 1), steps=most, adapt=_unregularized)
    size = min(examples or bench.batch_size, len(bench.inputs))
    inputs, labels = bench.inputs[:size], bench.labels[:size]
    target = target_of(labels)
    levels, rises = Levels(), False
    records: list[Record] = []

    with Recorder(bench.model) as recorder:

        def step() -> float:
            nonlocal rises
            prepared = bench.prepare(inputs, labels)
            record = recorder.end_batch(bench.step(*prepared))
            records.append({"step": len(records), **record})
            levels.add(record)
            limit = EARLY_LOSS_RISE if levels.early else LOSS_RISE
            rises = rises or (levels.loss is not None and levels.loss.above(limit))
            return float(record["loss"])

        reached = _overfit(step, steps or STEPS, target)
        while not reached and not rises and 2 * len(records) <= most and _falls(records):
            reached = _overfit(step, len(records), target)
    losses = [record["loss"] for record in records]
    blown_up = not max(losses, key=_size) <= BLOW_UP * losses[0]
    reached_at = len(records) - 1 if reached else None
    return Overfit(records, target, reached_at, size, rises or blown_up)


def _overfit(step: Callable[[], float], steps: int, target: float) -> bool:
    """Call `step` up to `steps` times; return whether its loss reached the target, and stop if it is not finite."""
    for _ in range(steps):
        loss = step()
        if loss <= target:
            return True
        if not math.isfinite(loss):
            break
    return False


def _falls(records: list[Record]) -> bool:
    losses = [record["loss"] for record in records]
    return math.isfinite(losses[-1]) and min(losses) < FALLING * min(losses[: len(losses) // 2])


def _size(loss: float) -> float:
    return math.inf if math.isnan(loss) else loss


def target_of(labels: Tensor) -> float:
    """Return the loss that counts as learnt: 0.01, for a regression a tenth of the variance of its targets."""
    if not labels.is_floating_point():
        return TARGET
    return REGRESSION_TARGET * constant_guess(labels)


def _unregularized(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    disable_dropout(model)
    for group in optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = 0.0


def show(measured: Overfit) -> Evidence:
    """Return the curve and the figures."""
    losses = measured.losses
    finite = [loss for loss in losses if math.isfinite(loss)]
    lowest, highest = short(min(finite, default=None)), short(max(losses, key=_size))
    said = f"lowest loss {lowest} in {len(losses)} steps, target {short(measured.target)}"
    if measured.outcome == "diverges":
        said = f"first loss {short(losses[0])}, highest {highest} in {len(losses)} steps"
    if measured.reached_at is not None:
        said = f"loss {short(losses[-1])} at step {measured.reached_at}, target {short(measured.target)}"
    return Evidence(
        what=(
            f"the first {measured.examples} examples, {len(losses)} steps with its own optimizer;"
            " dropout, weight decay and AUGMENT off"
        ),
        outcome=measured.outcome,
        said=said,
        figures={
            "first loss": losses[0],
            "lowest loss": min(finite, default=None),
            "highest loss": max(losses, key=_size),
            "last loss": losses[-1],
            "target": measured.target,
            "reached at step": measured.reached_at,
        },
        plots=(
            Plot(
                title="Loss on one batch",
                x_label="step",
                y_label="loss",
                lines=(
                    Line(label="loss", points=tuple(enumerate(losses))),
                    Line(label="target", points=((0, measured.target), (len(losses) - 1, measured.target))),
                ),
                scale="log",
            ),
        ),
    )
