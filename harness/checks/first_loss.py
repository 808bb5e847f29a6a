"""Compare the loss before the first update with the loss of a network that only guesses.

A classifier that knows nothing gives each of C classes the same probability. Its mean cross-entropy is ln C (Karpathy,
"A Recipe for Training Neural Networks", 2019, "verify loss @ init"). If the classifier knows only the class
frequencies, its loss is the entropy of the labels, which is lower. If there is a single output for yes or no, the loss
of a guess is ln 2.

In a regression, a guess is the same output for all examples, and the check uses the loss of the best constant output.
For the mean squared error, this loss is the variance of the targets. A network whose first outputs are near zero may
have a higher loss: the check also accepts the loss of outputs that are all zero, up to ten times the loss of the best
constant. If the ratio is 64 and the batch has 64 examples, the loss is a sum where it should be a mean.

If the loss is not a plain cross-entropy (weighted, focal, hinge), the check compares it with its own value for equal
outputs. If the loss compares examples with each other, or if its targets are of an unknown kind, the check compares it
with its own value after each output has moved to the next example.
"""

import copy
import math

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Finding, short
from harness.checks.core.loss import (
    LabelKind,
    Loss,
    OutputRange,
    form_of,
    kind_of,
    least_constant_loss,
    range_of,
    to_range,
)
from harness.checks.core.subject import Subject, Trial

# figure                                | healthy      | broken | bound             | source
# first loss / loss of a guess          | 0.99 to 1.08 |        | LOW 0.5, HIGH 1.5 | healthy experiments, ten seeds
#                                       | 1.2          |        |                   | outputs with a deviation of 1
# first accuracy / accuracy of a guess  |              |        | KNOWS 3           | above 3: already trained
# loss of zeros / loss of best constant |              |        | OFF_CENTRE 10     | targets: mean of 3 deviations
LOW, HIGH = 0.5, 1.5
KNOWS = 3.0
OFF_CENTRE = 10.0


def measure(subject: Subject) -> Finding:
    """Make the first step of the run and compare the loss that `train_step` returns with the loss of a guess."""
    trial = subject.trial()
    inputs, labels = next(trial.batches())
    model = copy.deepcopy(trial.model).eval()
    with torch.no_grad():
        outputs = model(inputs).float()
    range, own = range_of(model, inputs, outputs), trial.labels
    known = own if (own.dtype, own.dim()) == (labels.dtype, labels.dim()) else labels
    name, least, guess = _guess(trial.experiment.compute_loss, outputs, labels, known, range)
    loss = float(trial.step(inputs, labels))
    outcome = "low" if loss < LOW * least else "high" if loss > HIGH * guess else "chance"
    if outcome == "low" and loss > 0 and _knows(trial, model, outputs, labels):
        outcome = "trained"
    least_words = (
        f"; for labels as frequent as these, {short(least)}" if outcome == "low" and least < 0.99 * guess else ""
    )
    return Finding(
        outcome if math.isfinite(loss) else "non-finite",
        f"first loss {short(loss)}, {name} = {short(guess)}{least_words}",
        {
            "first loss": loss,
            name: guess,
            "the same, for labels as frequent as these": least,
            "ratio": loss / guess if guess else math.inf,
        },
    )


def _knows(trial: Trial, model: nn.Module, outputs: Tensor, labels: Tensor) -> bool:
    """Return whether the initial weights predict the right validation class far more often than a guess does."""
    if kind_of(outputs, labels) != "classes":
        return False
    accuracy = trial.experiment.evaluate(model, *trial.validation)["val_accuracy"]
    return accuracy is not None and accuracy > KNOWS / outputs.shape[-1]


def _guess(loss: Loss, outputs: Tensor, labels: Tensor, known: Tensor, range: OutputRange) -> tuple[str, float, float]:
    """Return the name of the guess, its loss with knowledge of the class frequencies, and its loss without it."""
    kind, outward = kind_of(outputs, labels), to_range(range, outputs)

    def of_scores(scores: Tensor, targets: Tensor) -> Tensor:
        return loss(outward(scores), targets)

    form = form_of(of_scores, outputs, labels, kind) if kind in ("classes", "shares", "binary") else kind
    zeros = torch.zeros_like(outputs)
    if kind == "numbers":
        share = _by_example(loss, zeros, labels)
        best = share * least_constant_loss(loss, outputs, labels)
        at_zero = share * float(loss(zeros, labels))
        return "best constant", best, min(max(best, at_zero), OFF_CENTRE * best)
    if kind == "own" or form == "relative":
        moved = float(loss(outputs.roll(1, 0), labels))
        return "outputs of another order", moved, moved
    if form in ("weighted", "own"):
        share = _by_example(of_scores, zeros, labels)
        equal = share * float(of_scores(zeros, labels))
        best = share * least_constant_loss(loss, outputs, labels) if kind == "binary" else equal
        return "equal outputs", min(best, equal), equal
    classes = 2 if kind == "binary" else outputs.shape[-1]
    return f"ln {classes}", min(_entropy(known, kind, classes), math.log(classes)), math.log(classes)


def _by_example(loss: Loss, outputs: Tensor, labels: Tensor) -> float:
    """Return the mean loss of the halves of a batch over the loss of the whole batch: 1 for a mean, 0.5 for a sum."""
    half, whole = len(labels) // 2, float(loss(outputs, labels))
    if not half or not whole:
        return 1.0
    parts = loss(outputs[:half], labels[:half]), loss(outputs[half : 2 * half], labels[half : 2 * half])
    return float(sum(parts)) / 2 / whole


def _entropy(labels: Tensor, kind: LabelKind, classes: int) -> float:
    """Return the entropy of the class frequencies, in nats."""
    if kind == "shares":
        frequent = labels.flatten(0, -2).double().mean(dim=0)
    else:
        frequent = torch.bincount(labels[labels >= 0].flatten().long(), minlength=classes).double()
    return float(torch.distributions.Categorical(probs=frequent).entropy())
