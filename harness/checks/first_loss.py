"""The loss before the first step, against that of a guess: ln C for C classes, the variance for a regression."""

import copy
import math
from dataclasses import dataclass
from typing import Literal

import torch

from harness.checks.evidence import Evidence, short
from harness.checks.subject import Subject
from harness.losses import chance_loss, constant_guess
from harness.run.evaluation import is_classification

# First loss over the loss of a guess. Healthy: 0.99 to 1.08 over ten seeds of each experiment; a network whose
# outputs start large (deviation 1, where the usual start gives 0.1 to 0.6) comes to 1.2.
LOW, HIGH = 0.5, 1.5

Outcome = Literal["chance", "low", "high", "non-finite"]


@dataclass(frozen=True)
class FirstLoss:
    """The loss of the first batch at the first weights, and that of a guess; `classes` is None for a regression."""

    loss: float
    guess: float
    classes: int | None
    batch_size: int

    @property
    def ratio(self) -> float:
        """First loss over the loss of a guess."""
        return self.loss / self.guess if self.guess else math.inf

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if not math.isfinite(self.loss):
            return "non-finite"
        return "low" if self.ratio < LOW else "high" if self.ratio > HIGH else "chance"


def measure(subject: Subject) -> FirstLoss:
    """Make the first step of the run and take the loss that `train_step` returns.

    A classifier that knows nothing gives every class the same probability, and its mean cross-entropy is ln C
    (Karpathy, "A Recipe for Training Neural Networks", 2019, "verify loss @ init"). A regression that knows nothing
    predicts the mean, and its mean squared error is the variance of the targets.
    """
    bench = subject.bench()
    inputs, labels = next(bench.batches())
    with torch.no_grad():
        outputs = copy.deepcopy(bench.model).eval()(inputs)
    loss = float(bench.step(inputs, labels))
    classes = int(outputs.shape[1]) if is_classification(outputs, labels) else None
    guess = chance_loss(classes) if classes else constant_guess(labels)
    return FirstLoss(loss, guess, classes, len(labels))


def show(measured: FirstLoss) -> Evidence:
    """Return the two losses."""
    guess = "variance of the targets" if measured.classes is None else f"ln {measured.classes}"
    return Evidence(
        what=f"the first batch of {measured.batch_size} examples, at the weights that the seed gives",
        outcome=measured.outcome,
        said=f"first loss {short(measured.loss)}, {guess} = {short(measured.guess)}",
        figures={"first loss": measured.loss, guess: measured.guess, "ratio": measured.ratio},
    )
