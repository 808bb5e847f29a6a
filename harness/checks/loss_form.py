"""The experiment's loss against the stable form: on its own outputs, on all of them twice, on logits of 10,000."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from harness.checks.evidence import Cell, Evidence, Table, short
from harness.checks.subject import Subject
from harness.losses import stable_cross_entropy
from harness.run.evaluation import is_classification
from harness.run.experiment import Experiment

LARGE = 1e4
# float32 sums of a batch differ in their last digits with the order of addition: 1e-6 of the loss at most.
CLOSE = 1e-4
# Rows of outputs that are probabilities add up to 1 within the rounding of float16 autocast.
ROW_SUM = 1e-2

Outcome = Literal["agrees", "grows", "bounded", "differs", "overflows", "no-reference"]


@dataclass(frozen=True)
class LossFigures:
    """Losses of the first batch, by the experiment and by the stable form: as it is, twice over, and of large logits.

    `gradient` is the relative distance between the gradients of the two at the outputs; `least` what the experiment's
    loss gives for the best outputs of the range that the network's outputs keep to, and None where they keep to none.
    For a regression the stable form is the mean squared error.
    """

    whole: tuple[float, float]
    twice: tuple[float, float]
    gradient: float
    large: tuple[float, float] | None
    least: float | None
    examples: int
    classes: int | None

    @property
    def growth(self) -> float:
        """The loss of every example twice over that of every example once: 1 for a mean."""
        return _ratio((self.twice[0], self.whole[0]))

    @property
    def outcome(self) -> Outcome:
        """What came of it; the first that applies."""
        if self.large is not None and not (math.isfinite(self.large[0]) and math.isfinite(self.whole[0])):
            return "overflows"
        if not _near(self.growth, 1.0):
            return "grows"
        if self.least is not None:
            return "bounded"
        if self.classes is None and not _near(_ratio(self.whole), 1.0):
            return "no-reference"  # a regression may have any loss
        return "agrees" if _near(_ratio(self.whole), 1.0) and self.gradient < CLOSE else "differs"


def measure(subject: Subject) -> LossFigures:
    """Compute both losses of the first batch's outputs, in training mode at the first weights."""
    bench = subject.bench()
    inputs, labels = next(bench.batches())
    with torch.no_grad():
        outputs = bench.model.train()(inputs).float()
    classifies = is_classification(outputs, labels)
    reference = stable_cross_entropy if classifies else torch.nn.functional.mse_loss
    experiment = bench.experiment

    def both(outputs: Tensor, labels: Tensor) -> tuple[float, float]:
        with torch.no_grad():
            return float(experiment.compute_loss(outputs, labels)), float(reference(outputs, labels))

    large = None
    if classifies:
        # Every second example is right beyond doubt, the others as wrong.
        signs = torch.where(torch.arange(len(labels)) % 2 == 0, 1.0, -1.0).unsqueeze(1)
        large = both(LARGE * signs * torch.nn.functional.one_hot(labels, outputs.shape[1]), labels)
    return LossFigures(
        whole=both(outputs, labels),
        twice=both(torch.cat([outputs, outputs]), torch.cat([labels, labels])),
        gradient=_gradient_distance(experiment, reference, outputs, labels),
        large=large,
        least=_least(experiment, outputs, labels) if classifies else None,
        examples=len(labels),
        classes=int(outputs.shape[1]) if classifies else None,
    )


def _gradient_distance(experiment: Experiment, reference: object, outputs: Tensor, labels: Tensor) -> float:
    gradients = []
    for loss in (experiment.compute_loss, reference):
        leaf = outputs.clone().requires_grad_()
        assert callable(loss)
        value = loss(leaf, labels)
        (gradient,) = torch.autograd.grad(value, leaf, allow_unused=True)
        gradients.append(torch.zeros_like(leaf) if gradient is None else gradient.double())
    return float((gradients[0] - gradients[1]).norm() / gradients[1].norm())


def _least(experiment: Experiment, outputs: Tensor, labels: Tensor) -> float | None:
    """Return the loss of perfect outputs where every row is a distribution already; None for free logits."""
    inside = bool(((outputs >= 0) & (outputs <= 1)).all())
    if not inside or bool(((outputs.sum(dim=1) - 1).abs() > ROW_SUM).any()):
        return None
    perfect = torch.nn.functional.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    with torch.no_grad():
        least = float(experiment.compute_loss(perfect, labels))
    return least if least > CLOSE else None


def _ratio(pair: tuple[float, float]) -> float:
    return pair[0] / pair[1] if pair[1] else math.inf


def _near(value: float, other: float) -> bool:
    return abs(value - other) < CLOSE


def show(measured: LossFigures) -> Evidence:
    """Return the table of losses."""
    rows: list[tuple[Cell, ...]] = [
        (f"first batch, {measured.examples} examples", *measured.whole, _ratio(measured.whole)),
        ("the same, each example twice", *measured.twice, _ratio(measured.twice)),
    ]
    if measured.large is not None:
        rows.append((f"outputs of +-{LARGE:.0f}", *measured.large, _ratio(measured.large)))
    said = (
        f"loss / stable form {short(_ratio(measured.whole))}; with each example twice, {short(measured.growth)} times"
        " the loss"
    )
    if measured.least is not None:
        said = f"the least loss within the range of the outputs is {short(measured.least)}"
    form = "mean squared error" if measured.classes is None else "logsumexp(z) - z[label], mean"
    return Evidence(
        what=f"compute_loss beside {form}, on the outputs of the first batch",
        outcome=measured.outcome,
        said=said,
        figures={
            "loss over the stable form": _ratio(measured.whole),
            "loss of each example twice over once": measured.growth,
            "distance of the gradients": measured.gradient,
            "least loss within the outputs' range": measured.least,
        },
        tables=(
            Table(
                caption="Losses", columns=("outputs", "experiment", "stable form", "ratio"), rows=tuple(rows)
            ),
        ),
    )
