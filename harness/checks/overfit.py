"""Train on one batch again and again with the experiment's own optimizer; dropout, weight decay and AUGMENT are off.

If network, loss and optimizer are correct, the loss of one batch falls below 0.01 nats within a few dozen steps
(Karpathy, "A Recipe for Training Neural Networks", 2019, "overfit one batch"). The check makes 120 steps, and up to 480
steps while the loss still falls. In four cases, a higher loss is good enough:

- The lowest possible loss (the floor) may be above zero. To find the floor, the check fits outputs directly to the
targets of this batch, without a network. The floor is 0 for plain cross-entropy, and higher for label smoothing or
mixed targets. If equal texts continue in different ways, the floor is the entropy of these continuations. If the
network has a single layer, the check finds the floor of this layer with L-BFGS.

- If the floor is above 0.01, or if the task is a regression, the target is the floor plus a tenth of the distance
between the floor and the loss of the best constant output.

- If the loss still falls at the last step, 4 % of the first loss is low enough. For a single layer, or for a head on
frozen layers (FROZEN), 50 % is low enough, because they learn slowly.

- If `train_step` minimizes another loss than `compute_loss`, it is enough that the network predicts the class of every
example.

`stalls` means that the loss stays high, and that more data or more steps will not help. The level of the loss is a
hint: ln 10 = 2.303 means that the network guesses among ten classes. The summary says whether the same network learns
the same batch with Adam and the stable form of the loss. If it does, compare your loss, optimizer and step with these
(or look for initial weights that only Adam can improve). If it does not, look at the network and the data. `diverges`
means that the updates make the loss worse.
"""

import copy
import itertools
import math
from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor, nn

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.loss import (
    Loss,
    LossForm,
    form_of,
    kind_of,
    least_constant_loss,
    least_loss,
    range_of,
    stable_loss,
    to_range,
)
from harness.checks.core.subject import Subject, Trial, minimizes_another_loss
from harness.errors import UserError
from harness.run.evaluation import IGNORED
from harness.run.experiment import disable_dropout
from harness.run.guardrails import Guardrails

# figure                                     | healthy  | broken       | bound       | source
# lowest loss of second half / of first half | <= 0.77  | >= 0.83      | FALLING 0.8 | correct runs, over 120 steps
# share of the first loss after 480 steps    | <= 0.034 | 0.06         | LEFT 0.04   | broken: a layer does not train
# highest loss / first loss                  | < 25     | 140 to 3,000 | BLOW_UP 100
#
# FALLING: in most broken runs, the ratio is at least 0.83.
STEPS, MOST_STEPS = 120, 480
FALLING = 0.8
LEFT, LEFT_BY_LAYER = 0.04, 0.5
TARGET, SHARE_LEFT = 0.01, 0.1
FAULTY: tuple[LossForm, ...] = ("scaled", "partial", "linear", "coupled", "other")
PLAIN_RATE, PLAINLY_LEARNT = 1e-3, 0.5  # the default learning rate of Adam
BLOW_UP = 100.0


def measure(subject: Subject) -> Finding:
    """Train on the first batch until the loss reaches the target or diverges, or until all steps are made."""
    trial, batch = _one_batch(subject)
    target = _target(trial, *batch)
    named = minimizes_another_loss(subject)
    losses: list[float] = []
    guardrails, rises, allowed, learnt = Guardrails(), False, STEPS, False
    for record in trial.records(_prepare_anew(trial, batch)):
        losses.append(float(record["loss"]))
        rises = rises or any(finding.kind == "loss-rise" for finding in guardrails.check(record))
        learnt = losses[-1] <= target or (named and _names_all(trial, *batch))
        if learnt or not math.isfinite(losses[-1]):
            break
        if len(losses) == allowed:
            if (rises and losses[-1] > losses[0] / 2) or not _falls(losses):
                break
            allowed *= 2
    highest = max(losses, key=lambda loss: math.inf if math.isnan(loss) else loss)
    lowest = min(filter(math.isfinite, losses), default=None)
    plain = None
    if learnt:
        outcome, summary = "reaches", f"loss {short(losses[-1])} at step {len(losses) - 1}, target {short(target)}"
    elif rises or not (math.isfinite(highest) and highest <= BLOW_UP * losses[0]):
        outcome = "diverges"
        summary = f"first loss {short(losses[0])}, highest {short(highest)} in {len(losses)} steps"
    elif len(losses) == MOST_STEPS and _falls(losses) and min(losses) < _share_left(trial) * losses[0]:
        outcome = "reaches"
        summary = f"loss {short(losses[-1])} still falls at step {MOST_STEPS}, target {short(target)}"
    else:
        outcome, plain = "stalls", _plainly(subject)
        found = "learns the batch: compare optimizer, step and loss"
        if plain >= PLAINLY_LEARNT:
            found = "does not learn the batch, either: look at network and data"
        summary = f"lowest loss {short(lowest)} in {len(losses)} steps, target {short(target)}; plain Adam {found}"
    figures: dict[str, Cell] = {
        "first loss": losses[0],
        "lowest loss": lowest,
        "highest loss": highest,
        "last loss": losses[-1],
        "target, a little above the least loss that can be reached": target,
        "reached at step": len(losses) - 1 if learnt else None,
        "share of the first loss that plain Adam leaves": plain,
    }
    return Finding(outcome, summary, figures)


def _one_batch(subject: Subject) -> tuple[Trial, tuple[Tensor, Tensor]]:
    """Return a trial, and its first batch as one call of `prepare_batch` returns it."""
    trial = subject.trial(disable_augment=True, steps=MOST_STEPS, adapt=_switch_off_regularization)
    inputs, labels = trial.inputs[: trial.batch_size], trial.labels[: trial.batch_size]
    return trial, trial.prepare(inputs, labels)


def _prepare_anew(trial: Trial, batch: tuple[Tensor, Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the batch once for each step, each time prepared again as in a run.

    If `prepare_batch` turns the targets into targets of another kind, such as mixtures, yield the same prepared batch
    each time, because no network can overfit mixtures that change in each step.
    """
    inputs, labels = trial.inputs[: trial.batch_size], trial.labels[: trial.batch_size]
    other = batch[1].dtype != labels.dtype or batch[1].shape != labels.shape
    for step in range(MOST_STEPS):
        yield batch if other or not step else trial.prepare(inputs, labels)


def _target(trial: Trial, inputs: Tensor, labels: Tensor) -> float:
    """Return the loss at which the batch counts as learnt."""
    model, loss = copy.deepcopy(trial.model).eval(), trial.experiment.compute_loss
    with torch.no_grad():
        outputs = model(inputs).float()
    if not bool(outputs.isfinite().all()):
        return TARGET
    range, kind = range_of(model, inputs, outputs), kind_of(outputs, labels)
    # If a loss treats probabilities as logits, which is a fault, find the floor for logits.
    takes_logits = False
    with torch.no_grad(), suppress(UserError):  # a loss may reject values that are not probabilities
        takes_logits = abs(float(loss(outputs + 1, labels)) - float(loss(outputs, labels))) < 1e-4
    outward = to_range("scores" if takes_logits else range, outputs)

    def of_scores(scores: Tensor, targets: Tensor) -> Tensor:
        return loss(outward(scores), targets)

    if kind not in ("numbers", "own") and form_of(of_scores, outputs, labels, kind) in FAULTY:
        return TARGET
    rows = _equal_rows(model, trial.inputs[: trial.batch_size], inputs, outputs)
    floor = least_loss(of_scores, outputs, labels, rows)
    floor = max(floor, _least_of_one_layer(model, loss, inputs, labels))
    floor = floor if math.isfinite(floor) else 0.0
    if kind in ("numbers", "own") or floor > TARGET:
        return floor + SHARE_LEFT * max(least_constant_loss(loss, outputs, labels) - floor, 0.0)
    return floor + TARGET


def _is_one_layer(model: nn.Module) -> bool:
    layers = [layer for layer in model.modules() if next(layer.parameters(recurse=False), None) is not None]
    return len(layers) == 1 and isinstance(layers[0], nn.Linear)


def _share_left(trial: Trial) -> float:
    """Return the share of the first loss that is low enough if the loss still falls at the last possible step."""
    return LEFT_BY_LAYER if trial.experiment.frozen or _is_one_layer(trial.model) else LEFT


def _least_of_one_layer(model: nn.Module, loss: Loss, inputs: Tensor, labels: Tensor) -> float:
    """Return the lowest loss of a network with one layer, such as logistic regression; 0 for any other network."""
    if not _is_one_layer(model):
        return 0.0
    model = copy.deepcopy(model)
    found = [math.inf]

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(model(inputs), labels)
        value.backward()
        found.append(value.item())
        return value

    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    return max(min(filter(math.isfinite, found), default=math.inf), 0.0)


def _equal_rows(model: nn.Module, loaded: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor | None:
    """Return a group number for each row of outputs; for rows of one group, the network must give equal outputs.

    If the network gives one output per example, equal inputs form a group. In texts, positions form a group if they
    have equal tokens and equal outputs; before this comparison, the weights are changed a little, because the initial
    outputs may all be equal. Return None if there are no groups of several rows.
    """
    if outputs.dim() == 3 and outputs.shape[:2] == inputs.shape[:2]:
        rng = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=rng).to(parameter))
            answers = model(inputs).float().flatten(0, 1)
        rows = (answers / answers.std().clamp(min=1e-12) * 1e4).round()
        rows = torch.cat([rows, inputs.reshape(len(rows), -1).to(rows)], dim=1)
    elif len(outputs) == len(loaded) and outputs.dim() == 2:
        rows = loaded.reshape(len(loaded), -1)
    else:
        return None
    alike = rows.unique(dim=0, return_inverse=True)[1]
    return None if int(alike.max()) + 1 == len(rows) else alike


@torch.no_grad()
def _names_all(trial: Trial, inputs: Tensor, labels: Tensor) -> bool:
    """Return whether the network predicts the class of each example, or the largest class of its soft label."""
    outputs = copy.deepcopy(trial.model).train()(inputs).float()
    kind = kind_of(outputs, labels)
    if kind not in ("classes", "shares"):
        return False
    labels = labels if kind == "classes" else labels.argmax(dim=-1)
    return bool((outputs.argmax(dim=-1) == labels)[labels != IGNORED].all())


def _plainly(subject: Subject) -> float:
    """Train with Adam and the stable form of the loss, and return the lowest loss divided by the first loss."""
    trial, batch = _one_batch(subject)
    optimizer = torch.optim.Adam(trial.model.parameters(), lr=PLAIN_RATE, fused=True)
    losses: list[float] = []
    form = None
    for inputs, labels in itertools.islice(_prepare_anew(trial, batch), STEPS):
        optimizer.zero_grad()
        outputs = trial.model.train()(inputs).float()
        form = form or stable_loss(kind_of(outputs, labels), range_of(trial.model, inputs, outputs))
        loss = (form or trial.experiment.compute_loss)(outputs, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return min(losses) / losses[0] if losses[0] else math.inf


def _falls(losses: list[float]) -> bool:
    return min(losses) < FALLING * min(losses[: len(losses) // 2])


def _switch_off_regularization(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    disable_dropout(model)
    for group in optimizer.param_groups:
        if "weight_decay" in group:
            group["weight_decay"] = 0.0
