"""Analyse a loss function: the kind of its targets, its stable form, its lowest value, and the form of its gradient.

All measurements use artificial outputs, so that they judge the loss separately from the network.
"""

import copy
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.run.diagnostics import stable_cross_entropy
from harness.run.evaluation import IGNORED, is_classification

Loss = Callable[[Tensor, Tensor], Tensor]
LabelKind = Literal["classes", "shares", "binary", "numbers", "own"]
OutputRange = Literal["scores", "probabilities", "log probabilities"]
LossForm = Literal["mean", "weighted", "own", "relative", "scaled", "partial", "linear", "coupled", "other"]

SURE, TEMPERATURE = 1e6, 10.0
CLOSE = 1e-3
POINTS = 4
SPREAD = 2.0  # the deviation of the scores at which gradients are compared
RIGHT = 0.9
STEPS = 100


def kind_of(outputs: Tensor, labels: Tensor) -> LabelKind:
    """Return the kind of the targets: class indices, soft labels (shares), zeros and ones, numbers, or another kind."""
    if is_classification(outputs, labels):
        return "classes"
    if not labels.is_floating_point():
        return "own"
    if outputs.shape == labels.shape and outputs.dim() > 1 and outputs.shape[-1] > 1 and are_shares(labels):
        return "shares"
    if outputs.numel() != labels.numel():
        return "own"
    return "binary" if bool(((labels == 0) | (labels == 1)).all()) and bool(labels.any()) else "numbers"


def are_shares(values: Tensor) -> bool:
    """Return whether the entries of each row are non-negative and add up to one."""
    return bool((values >= 0).all()) and bool(((values.sum(dim=-1) - 1).abs() < CLOSE).all())


def are_probabilities(scores: Tensor) -> bool:
    """Return whether outputs lie in 0 to 1, as after softmax or sigmoid; if all outputs are equal, return False."""
    return _within_one(scores) and bool((scores != scores.flatten()[0]).any())


def _within_one(scores: Tensor) -> bool:
    return bool(((scores >= 0) & (scores <= 1)).all())


@torch.no_grad()
def stretch_outputs(model: nn.Module, inputs: Tensor) -> Tensor:
    """Return the outputs of a network whose last layer and temperature are scaled up, so that it is very certain.

    The weights of the last layer that is called are multiplied by a million, and learnt scalars are multiplied by ten.
    """
    sure = copy.deepcopy(model)
    layers: list[nn.Module] = []
    for layer in sure.modules():
        if next(layer.parameters(recurse=False), None) is not None:
            layer.register_forward_pre_hook(lambda layer, _: layers.append(layer))
    sure(inputs)
    for parameter in layers[-1].parameters(recurse=False) if layers else ():
        if not bool(parameter.any()):  # a layer that starts at zero
            parameter.copy_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
        parameter.mul_(SURE)
    outputs = torch.as_tensor(sure(inputs)).float()
    # A learnt temperature scales normalized outputs. The network may use the temperature as an exponent, so multiply it
    # only by ten.
    for scale in (parameter for parameter in sure.parameters() if parameter.numel() == 1):
        scale.mul_(TEMPERATURE)
    hotter = torch.as_tensor(sure(inputs)).float()
    return hotter if bool(hotter.isfinite().all()) else outputs


def range_of(model: nn.Module, inputs: Tensor, outputs: Tensor) -> OutputRange:
    """Return the range of a network's outputs: scores, probabilities or log probabilities.

    A single output is a probability only if it also stays in 0 to 1 when the last layer is scaled up.
    """
    if are_probabilities(outputs) and (outputs.shape[-1] > 1 or _within_one(stretch_outputs(model, inputs))):
        return "probabilities"
    if outputs.shape[-1] > 1 and bool((outputs.logsumexp(dim=-1).abs() < CLOSE).all()):
        return "log probabilities"
    return "scores"


def to_range(range: OutputRange, outputs: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the function that turns scores into outputs of this range, such as softmax for probabilities."""
    if range == "scores":
        return lambda scores: scores
    if range == "log probabilities":
        return lambda scores: scores.log_softmax(dim=-1)
    if outputs.shape[-1] > 1 and are_shares(outputs):
        return lambda scores: scores.softmax(dim=-1)
    return torch.sigmoid


def mean_cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of outputs. Outputs that are not probabilities count as logits.

    Labels are class indices, one per row of scores, or soft labels.
    """
    return stable_cross_entropy(scores.clamp(min=1e-30).log() if are_probabilities(scores) else scores, labels)


def stable_loss(kind: LabelKind, range: OutputRange) -> Loss | None:
    """Return the stable form of the mean loss for this kind of targets, or None if there is none."""
    if kind in ("classes", "shares"):
        return mean_cross_entropy
    if kind == "binary":
        if range == "probabilities":
            return lambda outputs, labels: F.binary_cross_entropy(outputs, labels.view_as(outputs))
        return lambda outputs, labels: F.binary_cross_entropy_with_logits(outputs, labels.view_as(outputs))
    if kind == "numbers":
        return lambda outputs, labels: F.mse_loss(outputs, labels.view_as(outputs))
    return None


def least_loss(loss: Loss, start: Tensor, labels: Tensor, rows: Tensor | None = None, *, steps: int = 100) -> float:
    """Return the lowest loss that any outputs can reach, which L-BFGS finds by changing the outputs directly.

    `rows` contains a group number for each row of the flattened outputs. Rows of one group have equal values, because a
    network gives equal outputs for equal inputs. For a regression, the targets are also tried as outputs.
    """
    values = start.detach().clone()
    if rows is not None:
        flat = values.flatten(0, -2) if values.dim() > 1 else values
        values = torch.zeros(int(rows.max()) + 1, *flat.shape[1:], dtype=flat.dtype).index_copy(0, rows, flat)
    values.requires_grad_()
    found = [math.inf]
    with torch.no_grad():
        first = abs(float(loss(start, labels))) or 1.0  # the loss is divided by it: tolerances are fixed

    def outputs() -> Tensor:
        return values if rows is None else values[rows].view_as(start)

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(outputs(), labels) / first
        value.backward()
        if math.isfinite(value.item()):
            found.append(value.item() * first)
        return value

    optimizer = torch.optim.LBFGS([values], max_iter=steps, tolerance_grad=0.0, line_search_fn="strong_wolfe")
    with torch.enable_grad():
        if loss(outputs(), labels).requires_grad:
            with suppress(RuntimeError):  # the search fails if the loss is not finite
                optimizer.step(closure)
    if rows is None and labels.is_floating_point() and labels.numel() == start.numel():
        found.append(float(loss(labels.view_as(start), labels)))
    return min(filter(math.isfinite, found), default=math.inf)


def least_constant_loss(loss: Loss, outputs: Tensor, labels: Tensor) -> float:
    """Return the lowest loss of constant outputs, which a network can reach without using its inputs."""

    def constant(value: Tensor, labels: Tensor) -> Tensor:
        return loss(value.expand(outputs.numel()).view(outputs.shape), labels)

    found = [least_loss(constant, torch.zeros(1), labels)]
    if labels.is_floating_point():
        found += [float(loss(torch.full_like(outputs, float(at)), labels)) for at in (labels.mean(), labels.median())]
    return min(filter(math.isfinite, found), default=math.inf)


def form_of(loss: Loss, outputs: Tensor, labels: Tensor, kind: LabelKind) -> LossForm:
    """Return the form of a loss, judged by its gradient g with respect to the scores z of each example.

    A cross-entropy with soft labels q and a weight c per example has g = c (softmax(z) - q). A least-squares fit over
    some random scores z gives c and q. If the fit explains the gradient, the form depends on c and q:

    mean: c is 1 and q is largest at the label, as with label smoothing.
    weighted: c depends on the example.
    scaled: c is another constant.
    partial: c is 0 for some examples. In texts, one label may have c = 0, because this label stands for padding.

    Otherwise, the form depends on the gradient:

    linear: g does not depend on z.
    relative: the loss compares examples with each other, and reordering the classes does not change it (contrastive).
    coupled: the gradient of one example depends on the scores of other examples.
    own: gradient descent on the scores leads to the labels (focal, hinge).
    other: none of these.
    """
    rng = torch.Generator().manual_seed(0)
    points = [SPREAD * torch.randn(outputs.shape, generator=rng).to(outputs) for _ in range(POINTS)]
    targets = labels.flatten(0, -2) if kind == "shares" else labels.flatten()
    valid = targets != IGNORED if kind == "classes" else torch.ones(len(targets), dtype=torch.bool)

    def rows(scores: Tensor) -> Tensor:
        return scores.reshape(len(targets), -1)[valid]

    def gradient(scores: Tensor) -> Tensor:
        leaf = scores.clone().requires_grad_()
        (found,) = torch.autograd.grad(loss(leaf, labels), leaf, materialize_grads=True)
        return rows(found).double() * int(valid.sum())

    gradients = torch.stack([gradient(scores) for scores in points])
    shares = [rows(scores.sigmoid() if kind == "binary" else scores.softmax(dim=-1)) for scores in points]
    chances = torch.stack(shares).double()
    length = gradients.norm(dim=(0, 2))
    if not bool(gradients.isfinite().all()) or not bool(length.any()):
        return "other"
    moved, by = gradients - gradients.mean(dim=0), chances - chances.mean(dim=0)
    if bool((moved.norm(dim=(0, 2)) <= CLOSE * length).all()):
        return "linear"
    count = (moved * by).sum(dim=(0, 2)) / by.square().sum(dim=(0, 2))
    off = (moved - count.view(1, -1, 1) * by).norm(dim=(0, 2))
    if bool((off <= CLOSE * length.max()).all()):
        taught = chances.mean(dim=0) - gradients.mean(dim=0) / count.unsqueeze(1)
        if (
            kind == "classes"
            and outputs.dim() > 2
            and len(left_out := targets[valid][count.abs() < CLOSE].unique()) == 1
        ):
            counted = targets[valid] != left_out  # left_out is the label of padding
            share = float(counted.double().mean())
            return _form_of_counts(share * count[counted], taught[counted], targets[valid][counted], kind)
        return _form_of_counts(count, taught, targets[valid], kind)
    if kind == "binary":
        return "own" if _teaches(loss, outputs, labels, kind) else "other"
    with torch.no_grad():
        once, turned = (float(loss(scores, labels)) for scores in (points[0], points[0].flip(-1)))
    if abs(turned - once) <= CLOSE * abs(once):
        return "relative"
    # Keep the scores of the first half of the examples, and replace the scores of the second half.
    half = len(outputs) // 2
    mixed = gradient(torch.cat([points[0][:half], points[1][half:]]))
    first = int(valid[: half * (len(targets) // len(outputs))].sum())
    if bool((F.cosine_similarity(mixed[:first], gradients[0, :first], dim=1) < 1 - CLOSE).any()):
        return "coupled"
    return "own" if _teaches(loss, outputs, labels, kind) else "other"


def _form_of_counts(count: Tensor, taught: Tensor, targets: Tensor, kind: LabelKind) -> LossForm:
    """Return the form of a cross-entropy from the weight of each example (`count`) and its soft labels (`taught`)."""
    if bool((count < CLOSE * count.abs().max()).any()):
        return "partial"
    if not bool(_agrees(taught, targets, kind).all()):
        return "other"
    if float(count.max() - count.min()) > CLOSE * float(count.max()):
        return "weighted"
    return "mean" if abs(float(count.mean()) - 1) < CLOSE else "scaled"


def _agrees(scores: Tensor, targets: Tensor, kind: LabelKind) -> Tensor:
    """Return for each row whether the predicted class is the target; for binary targets, a share above 0.5 means 1."""
    if kind == "binary":
        return (scores.flatten() > 0.5) == (targets > 0.5)
    return scores.argmax(dim=1) == (targets if kind == "classes" else targets.argmax(dim=1))


def _teaches(loss: Loss, outputs: Tensor, labels: Tensor, kind: LabelKind) -> bool:
    """Return whether gradient descent on the scores themselves makes almost all scores predict their labels."""
    scores = torch.zeros_like(outputs).requires_grad_()
    optimizer = torch.optim.Adam([scores], lr=0.1, fused=True)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(scores, labels).backward()
        optimizer.step()
    targets = labels.flatten(0, -2) if kind == "shares" else labels.flatten()
    found = scores.detach().reshape(len(targets), -1)
    right = _agrees(found.sigmoid() if kind == "binary" else found, targets, kind)
    return float(right[targets != IGNORED].float().mean() if kind == "classes" else right.float().mean()) >= RIGHT


def ties_pairs(loss: Loss, outputs: Tensor, labels: Tensor) -> bool:
    """Return whether a loss compares each output only with its own target, not (by broadcasting) with all targets."""
    if len(labels) < 2 or bool((labels == labels[:1]).all()):
        return True
    # Draw outputs from the range of the targets. If outputs were far from all targets, the pairing would hardly change
    # the loss.
    middle, size = float(labels.double().mean()), SPREAD * float(labels.double().std())
    spread = middle + size * torch.randn(outputs.shape, generator=torch.Generator().manual_seed(0)).to(outputs)
    with torch.no_grad():
        once, turned = (float(loss(spread, targets)) for targets in (labels, labels.roll(1, 0)))
    return abs(once - turned) > 1e-6 * abs(once)
