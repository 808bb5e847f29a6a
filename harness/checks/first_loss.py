"""Compares the loss before the first update with the loss of a guess.

A classifier that knows nothing gives each of C classes the same probability, and its mean cross-entropy is ln
C (Karpathy, "A Recipe for Training Neural Networks", 2019, "verify loss @ init"). A regression that knows
nothing predicts the mean, and its mean squared error is the variance of the targets. A ratio of 64 where the
batch holds 64 examples is a sum where a mean should be.

Source of the bounds (0.5 and 1.5 times the guess): healthy experiments are at 0.99 to 1.08 over ten seeds, a
network whose outputs start with deviation 1 at 1.2.
"""

import copy
import math

import torch
from torch import Tensor

from harness.checks.core.finding import Check, Finding, consequence, short, sound
from harness.checks.core.subject import Subject
from harness.run.evaluation import is_classification

CHECK = Check(
    order=30,
    question="Is the first loss ln C, as for a guess?",
    minutes=1,
    outcomes=(
        sound("chance", "It begins with a guess: the scale of loss and outputs is ruled out.", "loss_form"),
        consequence(
            "low",
            "It knows more than a guess before it has learnt anything: the loss or the labels are not what they seem.",
            "loss_form",
            "data",
        ),
        consequence(
            "high",
            "The loss is off before any optimizer acts: its scale, or the scale of the first outputs, is wrong.",
            "loss_form",
            "activations",
        ),
        consequence("non-finite", "The very first forward pass gives no finite loss.", "data", "anomaly"),
    ),
)
LOW, HIGH = 0.5, 1.5


def constant_guess(targets: Tensor) -> float:
    """Return the mean squared error of a regression that always predicts the mean: the variance of all entries."""
    return float(targets.double().var(correction=0))


def measure(subject: Subject) -> Finding:
    """Make the first step of the run and compare the loss that `train_step` returns with the loss of a guess."""
    trial = subject.trial()
    inputs, labels = next(trial.batches())
    with torch.no_grad():
        outputs = copy.deepcopy(trial.model).eval()(inputs)
    loss = float(trial.step(inputs, labels))
    classes = int(outputs.shape[1]) if is_classification(outputs, labels) else None
    guess = math.log(classes) if classes else constant_guess(labels)
    name = f"ln {classes}" if classes else "variance of the targets"
    ratio = loss / guess if guess else math.inf
    outcome = "low" if ratio < LOW else "high" if ratio > HIGH else "chance"
    return Finding(
        outcome if math.isfinite(loss) else "non-finite",
        f"first loss {short(loss)}, {name} = {short(guess)}",
        {"first loss": loss, name: guess, "ratio": ratio},
    )
