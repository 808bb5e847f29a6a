"""Compares the loss and its gradient in a training step with the stable form of the mean loss.

The stable form is the mean cross-entropy, `logsumexp(z) - z[label]` for logits z (Goodfellow, Bengio and
Courville, Deep Learning, 2016, section 4.1), `-log(p[label])` where the network puts out probabilities, and
the mean squared error for a regression. For classes, the gradient that a step computes is compared on the
first batch, on half of it, and on the next half batch: a mean does not depend on the size. The backward pass
counts, before anything clips or divides the gradient; a step on every k-th batch may count each batch for
1/k, and a gradient scaler's factor is taken out. For a regression, which may have any loss, the loss is
compared on the outputs of the first batch.

`grows`: the gradient of a whole batch and of half of it differ by the number of examples. `bounded`: the loss takes
logits, and the network squashes what it puts out: with the weights of its last layer a million times as large its
outputs hardly grow, so that there is a least loss, or a least gradient, that no training passes.
`overflows`: logits of +-10,000 give no finite loss.

Sources of the bounds: sums of a batch in float32 differ by 1e-6 with the order of addition, gradients of
healthy steps by at most 1e-6; 1e-3 is different. A sum grows by 2 from half a batch to a whole one; 1.5
counts as growing. Logits grow as the weights of their layer do, the outputs of a softmax by a few hundred (1e3).
"""

import copy
import math
from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Check, Finding, Table, mechanism, short, sound
from harness.checks.core.subject import Subject, Trial, as_vector, fresh_gradients, reference_gradients, worst
from harness.run.evaluation import is_classification
from harness.run.experiment import Experiment

CHECK = Check(
    order=40,
    question="Is the loss, and its gradient, the mean that it should be?",
    minutes=3,
    outcomes=(
        sound("agrees", "The loss is the mean it should be: the loss function is ruled out.", "lr_find"),
        mechanism(
            "grows",
            "The loss depends on how many examples are in the batch, and so does the length of every update.",
            look="compute_loss, and what the size of a step depends on",
        ),
        mechanism(
            "bounded",
            "Outputs in the range that the network keeps to never have a loss near zero: a floor for training.",
            look="what the network puts out, and what the loss expects",
        ),
        mechanism(
            "differs",
            "The loss that the step minimizes is another function of the outputs than the stable form.",
            look="compute_loss, and what train_step does with the loss before the backward pass",
        ),
        mechanism("overflows", "Large outputs give a loss that is not finite.", look="compute_loss: exp and log"),
        sound("no-reference", "The regression has a loss of its own: nothing to compare it with.", "lr_find"),
    ),
)
LARGE = 1e4
CLOSE = 1e-4
GRADIENT_CLOSE = 1e-3
GROWS = 1.5
SURE = 1e6
GROWTH = 1e3
# Gradients are accumulated over a few batches; an experiment that steps more seldom is taken at each batch's word.
MOST_ACCUMULATED = 8

Loss = Callable[[Tensor, Tensor], Tensor]


def measure(subject: Subject) -> Finding:
    """Compare losses on the first batch's outputs and, for classes, the gradients of the first steps."""
    trial = _trial(subject)
    inputs, labels = next(trial.batches())
    with torch.no_grad():
        outputs = trial.model.train()(inputs).float()
    if is_classification(outputs, labels):
        return _classification(subject, trial, inputs, outputs, labels)
    return _regression(trial.experiment, outputs, labels)


def mean_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of what a network puts out: probabilities as such, all else as logits."""
    if are_probabilities(scores):
        return F.nll_loss(scores.clamp(min=1e-30).log(), labels)
    return F.cross_entropy(scores, labels)


def are_probabilities(scores: Tensor) -> bool:
    """Say whether outputs lie in 0 to 1, as those of softmax or sigmoid; equal logits of a network at zero do not."""
    return bool(((scores >= 0) & (scores <= 1)).all()) and bool((scores != scores[0, 0]).any())


def _trial(subject: Subject) -> Trial:
    # Autocast rounds; the form of the loss is the same without it.
    return subject.trial(disable_amp=True)


def _classification(subject: Subject, trial: Trial, inputs: Tensor, outputs: Tensor, labels: Tensor) -> Finding:
    experiment, model = trial.experiment, trial.model
    given = {f"first batch, {len(labels)} examples": outputs}
    if not are_probabilities(outputs):
        # Every second example is right beyond doubt, the others as wrong.
        signs = torch.where(torch.arange(len(labels)) % 2 == 0, 1.0, -1.0).unsqueeze(1)
        given[f"outputs of +-{LARGE:.0f}"] = LARGE * signs * F.one_hot(labels, outputs.shape[1])
    rows = tuple((name, *_losses(experiment, mean_cross_entropy, scores, labels)) for name, scores in given.items())
    least = _least(experiment, model, inputs)
    distance, growth = _gradient_figures(subject)
    summary = f"gradient {short(distance)} away from the mean's; whole batch over half of it {short(growth)}"
    if not all(math.isfinite(loss) for _, loss, _ in rows):
        outcome = "overflows"
    elif growth > GROWS or growth < 1 / GROWS:
        outcome = "grows"
    elif least is not None:
        outcome = "bounded"
        summary = f"the least loss within the range of the outputs is {short(least)}"
    else:
        outcome = "agrees" if distance < GRADIENT_CLOSE else "differs"
    figures: dict[str, Cell] = {
        "distance of the step's gradient": distance,
        "gradient of a whole batch over that of half of it": growth,
        "least loss within the outputs' range": least,
    }
    return _finding(outcome, summary, figures, rows)


def _regression(experiment: Experiment, outputs: Tensor, labels: Tensor) -> Finding:
    once = _losses(experiment, F.mse_loss, outputs, labels)
    twice = _losses(experiment, F.mse_loss, torch.cat([outputs, outputs]), torch.cat([labels, labels]))
    growth = twice[0] / once[0] if once[0] else math.inf
    ratio = once[0] / once[1] if once[1] else math.inf
    if not math.isfinite(once[0]):
        outcome = "overflows"
    elif not abs(growth - 1) < CLOSE:
        outcome = "grows"
    elif not abs(ratio - 1) < CLOSE:
        outcome = "no-reference"
    else:
        outcome = "agrees" if _apart_at_outputs(experiment, outputs, labels) < CLOSE else "differs"
    words = f"loss / mean squared error {short(ratio)}; with each example twice, {short(growth)} times the loss"
    figures: dict[str, Cell] = {"loss over the stable form": ratio, "loss of each example twice": growth}
    rows = (f"first batch, {len(labels)} examples", *once), ("the same, each example twice", *twice)
    return _finding(outcome, words, figures, rows)


def _finding(outcome: str, summary: str, figures: dict[str, Cell], rows: tuple[tuple[Cell, ...], ...]) -> Finding:
    table = Table("Losses", ("outputs", "experiment", "stable form"), rows)
    return Finding(outcome, summary, figures, tables=(table,))


@torch.no_grad()
def _losses(experiment: Experiment, stable: Loss, outputs: Tensor, labels: Tensor) -> tuple[float, float]:
    return float(experiment.compute_loss(outputs, labels)), float(stable(outputs, labels))


def _apart_at_outputs(experiment: Experiment, outputs: Tensor, labels: Tensor) -> float:
    """Return the relative distance of a regression loss's gradient at the outputs from the mean squared error's."""
    leaf = outputs.clone().requires_grad_()
    losses = experiment.compute_loss(leaf, labels), F.mse_loss(leaf, labels)
    own, stable = (torch.autograd.grad(loss, leaf, materialize_grads=True)[0].flatten() for loss in losses)
    return _distance(own.double(), stable.double())


@torch.no_grad()
def _least(experiment: Experiment, model: nn.Module, inputs: Tensor) -> float | None:
    """Return the least loss of a network that squashes logits; None for one that does not.

    A loss takes logits if it stays the same when all outputs are shifted.
    """
    outputs, sure = model(inputs).float(), copy.deepcopy(model)
    answers = outputs.argmax(dim=1)
    once, shifted = (float(experiment.compute_loss(outputs + by, answers)) for by in (0.0, 1.0))
    layers = [layer for layer in sure.modules() if next(layer.parameters(recurse=False), None) is not None]
    for parameter in layers[-1].parameters(recurse=False) if layers else ():
        parameter.mul_(SURE)
    stretched = sure(inputs).float()
    if not abs(once - shifted) < CLOSE * max(abs(once), 1.0) or _spread(stretched) > GROWTH * _spread(outputs):
        return None
    return float(experiment.compute_loss(stretched, stretched.argmax(dim=1)))


def _spread(outputs: Tensor) -> float:
    """Return the mean distance between the greatest and the least output of an example."""
    return float((outputs.amax(dim=1) - outputs.amin(dim=1)).mean())


def _gradient_figures(subject: Subject) -> tuple[float, float]:
    """Return how far the gradients of two steps are from the mean's, and a whole batch's over half a batch's."""
    trial = _trial(subject)
    batches = trial.batches()
    inputs, labels = next(batches)
    half = max(len(labels) // 2, 1)
    stepped: list[int] = []
    call = 0
    counter = trial.optimizer.register_step_pre_hook(lambda *_: stepped.append(call))
    pairs = []
    for part in (inputs, labels), (inputs[:half], labels[:half]):
        pairs.append(_of_step(trial, *part))
        call += 1
    while call < 2 * MOST_ACCUMULATED and len(set(stepped)) < 2:
        trial.step(*next(batches))
        call += 1
    counter.remove()
    # Several optimizers' steps in one call count as one.
    apart = [later - earlier for earlier, later in pairwise(dict.fromkeys(stepped))]
    share = 1 / apart[0] if apart else 1.0
    # At the same weights, so that only the number of examples differs.
    from_half = _of_step(_trial(subject), inputs[:half], labels[:half])
    growth = _factor(*pairs[0]) / _factor(*from_half) if _factor(*from_half) else math.inf
    return worst([_distance(found, share * expected) for found, expected in pairs]), growth


def _of_step(trial: Trial, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of a training step and of the stable form at the same weights, as vectors."""
    stable = reference_gradients(trial.model, mean_cross_entropy, inputs, labels)
    scale = math.prod(scaler.get_scale() for scaler in trial.experiment.scalers().values())
    with fresh_gradients(trial.model) as found:
        trial.step(inputs, labels)
    own = {name: gradient / scale for name, gradient in found.items()}
    return as_vector(own, stable), as_vector(stable, stable)


def _distance(found: Tensor, expected: Tensor) -> float:
    """Return the relative distance; a network that died in the step before has no gradient to be off from."""
    off, length = float((found - expected).norm()), float(expected.norm())
    return off / length if length else math.inf if off else 0.0


def _factor(found: Tensor, expected: Tensor) -> float:
    """Return the factor by which a gradient is longer than another, along it."""
    square = float(expected @ expected)
    return float(found @ expected) / square if square else 1.0
