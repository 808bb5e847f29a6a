"""Compare the loss of a training step and its gradient with the numerically stable form of the mean loss.

The stable form depends on the targets. For classes, it is the mean cross-entropy: `logsumexp(z) - z[label]` for logits
z (Goodfellow, Bengio and Courville, Deep Learning, 2016, section 4.1), or `-log(p[label])` if the network outputs
probabilities. For targets of zeros and ones, it is the binary cross-entropy. For a regression, it is the mean squared
error.

For classes, the check compares the gradient of a training step on a whole batch with the gradient on half of the batch,
because a mean does not depend on the number of examples. It uses the gradient of the backward pass, before anything
clips or divides it. If the optimizer makes a step only every k batches, the loss of each batch may be divided by k. The
check removes the factor of a gradient scaler. A regression may have any loss, so there the check compares only losses,
for the outputs of the first batch.

A loss for classes may also weight examples by class, or have soft targets (label smoothing, mixup): the outcome is
`agrees` as well. If the loss has another form (focal, hinge, contrastive), or if a step minimizes more than
`compute_loss`, the outcome is `no-reference`. Other outcomes mean:

- `grows`: the length of the gradient depends on the number of examples, as for a sum.

- `bounded`: the loss expects logits, but the network limits its outputs. Even if the weights of its last layer become a
million times as large, the outputs hardly grow. So there is a value below which training cannot bring the loss.

- `normalizes-twice`: as `bounded`, and the outputs for each example are probabilities that add up to one.

- `overflows`: logits of +-10,000 give a loss of NaN or infinity.

- `all-pairs`: the loss stays the same if the targets are reordered, so it does not compare each output with its own
target. This happens if outputs (B, 1) and targets (B,) broadcast to (B, B).
"""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, Table, percent, short
from harness.checks.core.loss import (
    LabelKind,
    Loss,
    OutputRange,
    are_shares,
    form_of,
    kind_of,
    least_loss,
    range_of,
    stable_loss,
    stretch_outputs,
    ties_pairs,
    to_range,
)
from harness.checks.core.subject import (
    Subject,
    Trial,
    as_vector,
    fresh_gradients,
    minimizes_another_loss,
    reference_gradients,
    worst,
)
from harness.run.evaluation import IGNORED
from harness.run.experiment import Experiment

# figure                              | healthy | broken        | bound               | source
# relative difference of two losses   | <= 1e-6 |               | CLOSE 1e-4          | order of addition in float32
# distance of the two gradients       | <= 1e-6 |               | GRADIENT_CLOSE 1e-3 | healthy steps
# gradient of a batch / of half of it | 1       | 2             | GROWS 1.5           | the loss is a sum
# growth of stretched outputs         | 1e6     | a few hundred | GROWTH 1e3          | healthy: logits; broken: softmax
LARGE = 1e4
CLOSE = 1e-4
GRADIENT_CLOSE = 1e-3
GROWS = 1.5
GROWTH = 1e3
PARALLEL = 1e-2
# A step may accumulate the gradients of this many batches. If the optimizer makes a step less often than that, each
# batch must give its full gradient.
MOST_ACCUMULATED = 8


def measure(subject: Subject) -> Finding:
    """Compare losses on the outputs of the first batch and, for classes, the gradients of the first steps."""
    trial = _trial(subject)
    inputs, labels = next(trial.batches())
    with torch.no_grad():
        outputs = trial.model.train()(inputs).float()
    if not bool(outputs.isfinite().all()):
        share = float((~outputs.isfinite()).double().mean())
        return Finding("no-outputs", f"{percent(share)} of the first outputs are not finite", {})
    kind, range = kind_of(outputs, labels), range_of(trial.model, inputs, outputs)
    if kind in ("classes", "shares", "binary"):
        return _classification(subject, trial, kind, range, inputs, outputs, labels)
    return _regression(trial.experiment, stable_loss(kind, range), outputs, labels)


def _trial(subject: Subject) -> Trial:
    # Autocast is off, because it rounds and does not change the form of the loss.
    return subject.trial(disable_amp=True)


def _classification(
    subject: Subject, trial: Trial, kind: LabelKind, range: OutputRange, inputs: Tensor, outputs: Tensor, labels: Tensor
) -> Finding:
    experiment, model, stable = trial.experiment, trial.model, stable_loss(kind, range)
    assert stable is not None
    given = {f"first batch, {len(labels)} examples": outputs}
    if range != "probabilities":
        sure = _sure_outputs(outputs, labels, kind)
        given[f"outputs of +-{LARGE:.0f}"] = sure.log_softmax(dim=-1) if range == "log probabilities" else sure
    rows = tuple((name, *_losses(experiment, stable, scores, labels)) for name, scores in given.items())
    if kind == "binary":
        least = _least_of_two(experiment, range, outputs, labels)
    else:
        least = _least(experiment, model, inputs, outputs, labels)
    distance, off, growth = _gradient_figures(subject, stable)
    summary = f"distance from the gradient of the mean {short(distance)}; whole batch over half of it {short(growth)}"
    if not all(math.isfinite(loss) for _, loss, _ in rows):
        outcome = "overflows"
        summary = "; ".join(f"{name}: the loss is {short(loss)}" for name, loss, _ in rows if not math.isfinite(loss))
    elif kind == "binary" and not ties_pairs(_on_scores(experiment, range, outputs), outputs, labels):
        outcome = "all-pairs"
        summary = f"outputs {tuple(outputs.shape)}, targets {tuple(labels.shape)}: a target changes the loss of others"
    elif off < PARALLEL and (growth > GROWS or growth < 1 / GROWS):
        outcome = "grows"
    elif least is not None:
        outcome = "normalizes-twice" if kind != "binary" and are_shares(outputs) else "bounded"
        summary = f"with the largest outputs that the network can give, the loss is still {short(least)}"
    elif distance < GRADIENT_CLOSE:
        outcome = "agrees"
    else:
        outcome, words = _of_another_form(subject, trial, kind, range, outputs, labels, parallel=off < PARALLEL)
        summary += f"; {words}"
    figures: dict[str, Cell] = {
        "distance of the step's gradient": distance,
        "off its direction": off,
        "gradient of a whole batch over that of half of it": growth,
        "loss of the stretched outputs": least,
    }
    return _make_finding(outcome, summary, figures, rows)


def _on_scores(experiment: Experiment, range: OutputRange, outputs: Tensor) -> Loss:
    """Return the loss as a function of scores, also for a network that outputs probabilities."""
    outward = to_range(range, outputs)
    return lambda scores, labels: experiment.compute_loss(outward(scores), labels)


def _of_another_form(
    subject: Subject,
    trial: Trial,
    kind: LabelKind,
    range: OutputRange,
    outputs: Tensor,
    labels: Tensor,
    *,
    parallel: bool,
) -> tuple[str, str]:
    """Return outcome and reason for a step whose gradient is not the gradient of the mean cross-entropy."""
    loss = trial.experiment.compute_loss
    distance, _, growth = _gradient_figures(subject, loss)
    if not distance < GRADIENT_CLOSE:
        # If a step minimizes more than compute_loss on purpose, it also returns a different loss.
        if not parallel and minimizes_another_loss(subject):
            return "no-reference", "train_step minimizes another loss than compute_loss, and returns it"
        return "differs", "the step does not minimize compute_loss"
    form = form_of(_on_scores(trial.experiment, range, outputs), outputs, labels, kind)
    if form != "relative" and not _as_mean(growth * _twice(loss, outputs, labels)):
        return "grows", "it is a sum"
    if kind == "classes" and range == "probabilities" and _is_plain_nll(loss, outputs, labels):
        return "differs", "it uses the probability of the label instead of its logarithm"
    if form in ("mean", "weighted"):
        floor = least_loss(loss, outputs, labels)
        return "agrees", f"it is a cross-entropy with weights or soft targets, and its minimum is {short(floor)}"
    return ("no-reference" if form in ("own", "relative") else "differs"), f"its form is {form}"


@torch.no_grad()
def _is_plain_nll(loss: Loss, outputs: Tensor, labels: Tensor) -> bool:
    picked = float(F.nll_loss(outputs.flatten(0, -2), labels.flatten(), ignore_index=IGNORED))
    return abs(float(loss(outputs, labels)) - picked) < CLOSE * abs(picked)


def _as_mean(growth: float) -> bool:
    return 1 / GROWS < growth < GROWS


@torch.no_grad()
def _twice(loss: Loss, outputs: Tensor, labels: Tensor) -> float:
    """Return the loss of a batch with each example twice, divided by the loss of the original batch."""
    once, twice = (float(loss(torch.cat([outputs] * n), torch.cat([labels] * n))) for n in (1, 2))
    return twice / once if once else math.inf if twice else 1.0


def _regression(experiment: Experiment, stable: Loss | None, outputs: Tensor, labels: Tensor) -> Finding:
    compared = stable or experiment.compute_loss
    once = _losses(experiment, compared, outputs, labels)
    twice = _losses(experiment, compared, torch.cat([outputs, outputs]), torch.cat([labels, labels]))
    growth = twice[0] / once[0] if once[0] else math.inf
    ratio = once[0] / once[1] if once[1] else math.inf
    if not math.isfinite(once[0]):
        outcome = "overflows"
    elif stable is not None and not ties_pairs(experiment.compute_loss, outputs, labels):
        outcome = "all-pairs"
    elif not abs(growth - 1) < CLOSE:
        outcome = "grows"
    elif stable is None or not abs(ratio - 1) < CLOSE:
        outcome = "no-reference"
    else:
        apart = _distance_at_outputs(experiment, stable, outputs, labels)
        outcome = "agrees" if apart < CLOSE else "differs"
    words = f"loss over the mean squared error {short(ratio)}; with each example twice, {short(growth)} times the loss"
    if outcome == "differs":
        words += f"; distance from the gradient of the mean squared error {short(apart)}"
    elif outcome == "all-pairs":
        words = f"outputs {tuple(outputs.shape)}, targets {tuple(labels.shape)}: a target changes the loss of others"
    figures: dict[str, Cell] = {"loss over the stable form": ratio, "loss of each example twice": growth}
    rows = (f"first batch, {len(labels)} examples", *once), ("the same, each example twice", *twice)
    return _make_finding(outcome, words, figures, rows)


def _sure_outputs(outputs: Tensor, labels: Tensor, kind: LabelKind) -> Tensor:
    """Return outputs of +-10,000: certainly right for every second example, certainly wrong for the other examples."""
    signs = torch.where(torch.arange(len(labels)) % 2 == 0, 1.0, -1.0).view(-1, *[1] * (outputs.dim() - 1))
    if kind == "binary":
        return LARGE * signs * (2 * labels.view_as(outputs) - 1)
    largest = labels.clamp(min=0) if kind == "classes" else labels.argmax(dim=-1)
    return LARGE * signs * F.one_hot(largest, outputs.shape[-1])


def _make_finding(outcome: str, summary: str, figures: dict[str, Cell], rows: tuple[tuple[Cell, ...], ...]) -> Finding:
    table = Table("Losses", ("outputs", "experiment", "stable form"), rows)
    return Finding(outcome, summary, figures, tables=(table,))


@torch.no_grad()
def _losses(experiment: Experiment, stable: Loss, outputs: Tensor, labels: Tensor) -> tuple[float, float]:
    return float(experiment.compute_loss(outputs, labels)), float(stable(outputs, labels))


def _distance_at_outputs(experiment: Experiment, form: Loss, outputs: Tensor, labels: Tensor) -> float:
    """Return the relative distance between the gradients of a regression loss and of its reference at the outputs."""
    leaf = outputs.clone().requires_grad_()
    losses = experiment.compute_loss(leaf, labels), form(leaf, labels)
    own, stable = (torch.autograd.grad(loss, leaf, materialize_grads=True)[0].flatten() for loss in losses)
    return _distance(own.double(), stable.double())


@torch.no_grad()
def _least(experiment: Experiment, model: nn.Module, inputs: Tensor, outputs: Tensor, labels: Tensor) -> float | None:
    """Return the lowest loss of a network that limits its logits; None if the network does not limit them.

    The loss expects logits if adding the same number to all outputs does not change it.
    """

    def least(outputs: Tensor) -> Tensor:
        answers = outputs.argmax(dim=-1)
        if labels.is_floating_point():
            return F.one_hot(answers, outputs.shape[-1]).to(labels)
        return torch.where(labels == IGNORED, labels, answers)

    once, shifted = (float(experiment.compute_loss(outputs + by, least(outputs))) for by in (0.0, 1.0))
    grown = stretch_outputs(model, inputs)
    if not abs(once - shifted) < CLOSE * max(abs(once), 1.0) or _spread(grown) > GROWTH * _spread(outputs):
        return None
    return float(experiment.compute_loss(grown, least(grown)))


@torch.no_grad()
def _least_of_two(experiment: Experiment, range: OutputRange, outputs: Tensor, labels: Tensor) -> float | None:
    """Return the lowest value of a binary loss that treats probabilities as logits; None if the loss does not."""
    own, as_logits = _losses(experiment, F.binary_cross_entropy_with_logits, outputs, labels.view_as(outputs))
    if range != "probabilities" or not abs(own - as_logits) < CLOSE:
        return None
    return float(experiment.compute_loss(labels.view_as(outputs), labels))


def _spread(outputs: Tensor) -> float:
    """Return the mean distance between the largest and the smallest output of an example."""
    return float((outputs.amax(dim=-1) - outputs.amin(dim=-1)).mean())


def _gradient_figures(subject: Subject, form: Loss) -> tuple[float, float, float]:
    """Compare the gradients of two training steps with the gradient of the loss `form`.

    Return three values: the largest relative distance, the largest part that does not point in the expected direction,
    and the gradient length of a whole batch divided by the gradient length of half of it.
    """
    trial = _trial(subject)
    batches = trial.batches()
    inputs, labels = next(batches)
    half = max(len(labels) // 2, 1)
    stepped: list[int] = []
    call = 0
    counter = trial.optimizer.register_step_pre_hook(lambda *_: stepped.append(call))
    pairs = []
    for part in (inputs, labels), (inputs[:half], labels[:half]):
        pairs.append(_of_step(trial, form, *part))
        call += 1
    while call < 2 * MOST_ACCUMULATED and len(set(stepped)) < 2:
        trial.step(*next(batches))
        call += 1
    counter.remove()
    # Steps of several optimizers in one call of train_step count as one step.
    apart = [later - earlier for earlier, later in pairwise(dict.fromkeys(stepped))]
    share = 1 / apart[0] if apart else 1.0
    # Use the same weights, so that only the number of examples differs.
    from_half = _of_step(_trial(subject), form, inputs[:half], labels[:half])
    growth = _factor(*pairs[0]) / _factor(*from_half) if _factor(*from_half) else math.inf
    off = worst([_distance(found, _factor(found, expected) * expected) for found, expected in pairs])
    return worst([_distance(found, share * expected) for found, expected in pairs]), off, growth


def _of_step(trial: Trial, form: Loss, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of a training step, and the gradient of a loss at the same weights, as vectors."""
    stable = reference_gradients(trial.model, form, inputs, labels)
    scale = math.prod(scaler.get_scale() for scaler in trial.experiment.scalers().values())
    with fresh_gradients(trial.model) as found:
        trial.step(inputs, labels)
    own = {name: gradient / scale for name, gradient in found.items()}
    return as_vector(own, stable), as_vector(stable, stable)


def _distance(found: Tensor, expected: Tensor) -> float:
    """Return the distance relative to `expected`; 0 if both are zero, which happens if all units are dead."""
    off, length = float((found - expected).norm()), float(expected.norm())
    return off / length if length else math.inf if off else 0.0


def _factor(found: Tensor, expected: Tensor) -> float:
    """Return the factor by which `expected` must be scaled to give the projection of `found` on it."""
    square = float(expected @ expected)
    return float(found @ expected) / square if square else 1.0
