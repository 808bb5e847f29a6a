"""Evaluates one network as `evaluate` does, twice, and once more with the network held in eval mode.

Before each way the network is in training mode, as training leaves it. An evaluation must repeat to the bit, change no
buffer of the network (batch norm's statistics), and report what eval mode gives: the same `evaluate`, called with a
network that stays in eval mode, must say the same. It must look at the whole split: the check notes what `evaluate`
gives the network, however it prepares and divides it, and computes the accuracy from what comes out; for a regression,
or targets of another kind, the loss. Labels of -100 count in no accuracy. The mean of the classes' recalls is right,
too, and so are the mean accuracy of texts, the share of texts without a mistake, and an accuracy without padding. So is
the mean loss of batches, but not their mean accuracy: a last batch of a few examples would count as much as a full one.
The check measures the network after the first six steps of the run. It also evaluates a stand-in with batch norm and
dropout twice: an `evaluate` that sets no mode is wrong even if this network has neither layer.

Sources of the bounds: two evaluations of one network are equal (buffers to 1e-9). An accuracy on the
validation split computed in another order of additions is within 0.005, a loss within a hundredth.

Three faults show beside the figures. If training gives the network its inputs as `load_data` returns them, `evaluate`
must do so, too. A copy of the network that is evaluated in its place, such as an average of its weights, must not keep
the statistics of batch norm that it began with. And the loss of classes that is reported must not be a fixed part of
the network's mean loss, as if it were divided by another number of examples; logarithms to base 10 or to the number of
classes are right. Healthy experiments and their sound variants change no input (5 % may be), and report the whole loss
wherever it can be compared; a sum over validation, divided by the number of training examples, is 0.2 of it (0.9).
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.loss import are_probabilities, kind_of, mean_cross_entropy, stable_loss
from harness.checks.core.subject import Subject, Trial
from harness.errors import UserError
from harness.run.evaluation import IGNORED

REPEATS, OFF = 1e-9, 1e-3
CHANGED, PART, EQUAL = 0.05, 0.9, 1e-3
SAME, SAME_LOSS = 5e-3, 1e-2
STEPS = 6

_LossAndAccuracy = tuple[float, float | None]  # loss, and accuracy (None for a regression)


def measure(subject: Subject) -> Finding:
    """Evaluate the network after the first steps in every way."""
    trial = subject.trial()
    start = copy.deepcopy(trial.model)
    with _inputs_of(trial.model) as trained_on:
        for batch in trial.batches(STEPS):
            trial.step(*batch)

    def evaluate_copy(model: nn.Module) -> _LossAndAccuracy:
        found = trial.experiment.evaluate(model, *trial.validation)
        return float(found["val_loss"] or 0.0), found["val_accuracy"]

    def evaluate_held(model: nn.Module) -> _LossAndAccuracy:
        with _mode(model, training=False):
            return evaluate_copy(model)

    model = copy.deepcopy(trial.model).train()
    first, second, moved = _twice(model, evaluate_copy)
    trusted, trusted_again, _ = _twice(copy.deepcopy(trial.model).train(), evaluate_held)
    stand_in = None
    # An evaluation made for the experiment's own network cannot take ours.
    with suppress(UserError, RuntimeError):
        own, again, changed = _twice(_Stand(trial).train(), evaluate_copy)
        stand_in = max(_loss_distance(own, again), changed)
    with _old_copies(start, trial.model) as old_copies:
        outputs, evaluated_on, _ = _record_evaluation(trial.model, evaluate_copy)
    factor = _factor(trial, evaluate_copy, start)
    changed_inputs = None
    # Test-time augmentation gives the network more inputs than there are.
    if trained_on and sum(map(len, outputs)) == len(trial.validation[0]) and _strange(trained_on, trial.inputs) == 0.0:
        changed_inputs = _strange(evaluated_on, trial.validation[0])
    reported, whole, last, what = _as_reported(trial, outputs, first)
    if not _equal(first, second) or not moved <= REPEATS or (stand_in is not None and stand_in > REPEATS):
        outcome = "unrepeatable"
    elif _distance(first, trusted) > SAME:
        outcome = "other-mode"
    elif reported == "part":
        outcome = "partial"
    elif changed_inputs is not None and changed_inputs > CHANGED:
        outcome = "other-inputs"
    elif old_copies:
        outcome = "old-statistics"
    elif factor is not None and factor < PART:
        outcome = "scaled"
    else:
        outcome = "other-mode" if reported == "" else "agree"
    columns = "evaluated", "loss", "loss again", "accuracy", "accuracy again"
    rows = (
        ("evaluate, as written", first[0], second[0], first[1], second[1]),
        ("evaluate, in eval mode", trusted[0], trusted_again[0], trusted[1], trusted_again[1]),
    )
    summary = f"loss as written {short(first[0])}, again {short(second[0])}, eval mode {short(trusted[0])}"
    if outcome in ("partial", "other-mode") and whole is not None:
        summary += f"; {what} of the outputs {short(whole)}, of those of the last call {short(last)}"
    return Finding(
        outcome,
        summary,
        {
            "loss as written": first[0],
            "loss in eval mode": trusted[0],
            "accuracy as written": first[1],
            "accuracy in eval mode": trusted[1],
            "buffers moved by evaluate": moved,
            "distance on a network with batch norm and dropout": stand_in,
            "examples that evaluate gives the network": sum(map(len, outputs)) or None,
            "calls of the network": len(outputs) or None,
            f"{what} of the outputs, whole split": whole,
            f"{what} of the outputs, last call": last,
            "inputs that evaluate changes, and training does not": changed_inputs,
            "copies with the statistics of the start": len(old_copies),
            "reported loss, as a part of the network's": factor,
        },
        tables=(Table("The same weights", columns, rows),),
    )


class _Stand(nn.Module):
    """A network with batch norm and dropout that takes any inputs, and puts out as much as the experiment's own."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        inputs = next(trial.batches())[0]
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(inputs)
        self.by_place = outputs.dim() == 3 and outputs.shape[:2] == inputs.shape[:2]
        self.shape = outputs.shape[2:] if self.by_place else outputs.shape[1:]
        self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(0.5)
        self.head = nn.Linear(16, math.prod(self.shape))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of the shape of the experiment's own network."""
        places = inputs.shape[:2] if self.by_place else inputs.shape[:1]
        values = inputs.to(self.head.weight.dtype).reshape(math.prod(places), 1, -1)
        features = nn.functional.adaptive_avg_pool1d(values, 16).flatten(1)
        found: Tensor = self.head(self.drop(self.norm(features)))
        return found.reshape(*places, *self.shape)


@contextmanager
def _mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Hold a network in one mode, whatever mode it is set to."""

    def hold(module: nn.Module, _inputs: object) -> None:
        module.training = training

    handles = [module.register_forward_pre_hook(hold) for module in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _inputs_of(model: nn.Module) -> Iterator[list[object]]:
    """Collect the first argument of each call of a network."""
    noted: list[object] = []
    handle = model.register_forward_pre_hook(lambda _model, inputs: noted.append(*inputs[:1] or (None,)))
    try:
        yield noted
    finally:
        handle.remove()


def _record_evaluation(
    network: nn.Module, written: Callable[[nn.Module], _LossAndAccuracy]
) -> tuple[list[Tensor], list[object], _LossAndAccuracy]:
    """Return a network's outputs, call by call, and inputs while `evaluate` runs, and what it reports.

    No outputs if one is no tensor, or if they differ in more than the number of examples, as of texts that are cut.
    """
    model = copy.deepcopy(network).train()
    noted: list[object] = []
    model.register_forward_hook(lambda _model, _inputs, output: noted.append(output))
    with _inputs_of(model) as given:
        figures = written(model)
    outputs = [output.detach().float() for output in noted if isinstance(output, Tensor)]
    alike = len(outputs) == len(noted) and len({output.shape[1:] for output in outputs}) <= 1
    return outputs if alike else [], given, figures


def _strange(given: list[object], loaded: Tensor) -> float | None:
    """Return the share of the rows that a network was given that are not loaded ones; None if it cannot be told."""
    rows = [part.detach().flatten(1) for part in given if isinstance(part, Tensor) and part.dim() > 1]
    known, width = loaded.flatten(1), loaded[0].numel()
    if len(rows) < len(given) or any(part.shape[1] != width for part in rows):
        return None
    found = torch.cat(rows).to(known.dtype) if rows else known[:0]
    off = torch.ones(len(found), dtype=torch.bool)
    if len(found) == len(known):  # in another precision, rows in order are nearly equal
        off = (found - known).double().abs().amax(dim=1) > OFF * max(float(known.double().std()), 1e-12)
    own = {row.numpy().tobytes() for row in known}
    strange = [row.contiguous().numpy().tobytes() not in own for row in found[off]]
    return sum(strange) / max(len(found), 1)


@contextmanager
def _old_copies(start: nn.Module, model: nn.Module) -> Iterator[list[nn.Module]]:
    """Collect networks of the model's shapes that are called with learnt weights and the buffers of the start."""
    found: list[nn.Module] = []
    shapes = [parameter.shape for parameter in model.parameters()]
    places = [
        place
        for place, (old, new) in enumerate(zip(start.buffers(), model.buffers(), strict=True))
        if old.is_floating_point() and not torch.equal(old, new)
    ]

    def note(module: nn.Module, _inputs: object) -> None:
        parameters, buffers = list(module.parameters()), list(module.buffers())
        if [parameter.shape for parameter in parameters] != shapes or len(buffers) != len(list(start.buffers())):
            return
        kept = list(start.buffers())
        learnt = not all(map(torch.equal, parameters, start.parameters()))
        if learnt and all(torch.equal(buffers[place], kept[place]) for place in places):
            found.append(module)

    handle = register_module_forward_pre_hook(note) if places else None
    try:
        yield found
    finally:
        if handle is not None:
            handle.remove()


def _factor(trial: Trial, written: Callable[[nn.Module], _LossAndAccuracy], start: nn.Module) -> float | None:
    """Return the reported loss as a part of the network's mean loss, if it is the same part for three networks.

    None if it is not, if the loss is no mean over examples with classes, or if the reported one is in other units.
    """
    labels = trial.validation[1]
    larger = copy.deepcopy(trial.model)
    for parameter in larger.parameters():
        parameter.data.mul_(2)
    factors = []
    for network in (trial.model, start, larger):
        outputs, _, (reported, _) = _record_evaluation(network, written)
        if labels.dim() != 1 or sum(map(len, outputs)) != len(labels):
            return None
        every = torch.cat(outputs)
        if kind_of(every, labels) != "classes":
            return None
        try:
            loss, twice = (
                float(trial.experiment.compute_loss(every.repeat(times, 1), labels.repeat(times))) for times in (1, 2)
            )
        except UserError:  # a loss of other targets than those of the validation split
            return None
        if not 0 < loss < math.inf or abs(twice - loss) > EQUAL * loss:
            return None
        if abs(reported - float(mean_cross_entropy(every, labels))) <= EQUAL * abs(reported):
            return 1.0
        factors.append(reported / loss)
    units = [1 / math.log(base) for base in (10, every.shape[1])]
    if max(factors) - min(factors) > EQUAL * abs(factors[0]) or any(abs(factors[0] - one) < EQUAL for one in units):
        return None
    return factors[0]


def _as_reported(
    trial: Trial, outputs: list[Tensor], reported: _LossAndAccuracy
) -> tuple[str | None, float | None, float | None, str]:
    """Return what of the split `evaluate` reports; the accuracy or loss of the whole split and of the last call; which.

    "whole" if outputs, call by call, give what it reports, "part" if those of some do, "" if none. None if it cannot be
    told: `evaluate` calls the network otherwise, more often than once an example, or reports another quantity than the
    loss.
    """
    labels = trial.validation[1]
    sizes = [len(part) for part in outputs]
    if not outputs or sum(sizes) > len(labels):
        return None, None, None, "loss"
    if sum(sizes) < len(labels):
        return "part", None, None, "loss"
    every, targets = torch.cat(outputs), labels.split(sizes)
    kind = kind_of(every, labels)
    by_name = kind == "classes" or (kind == "binary" and _says_yes_or_no(trial, every, labels))
    if by_name and reported[1] is not None:
        right = every.argmax(dim=-1) == labels if kind == "classes" else (every > _even(every)) == (labels > 0.5)
        counted = labels != IGNORED
        pairs = zip(right.split(sizes), counted.split(sizes), strict=True)
        parts = [float(part[own].double().mean()) for part, own in pairs]
        recalls = [float(right[labels == one].double().mean()) for one in labels[counted].unique()]
        whole = [float(right[counted].double().mean()), sum(recalls) / len(recalls)]
        if labels.dim() > 1:
            whole += _of_texts(right, labels)
        given, close = float(reported[1]), SAME
    else:
        by_name = False
        try:
            parts = [float(trial.experiment.compute_loss(*pair)) for pair in zip(outputs, targets, strict=True)]
            whole = [float(trial.experiment.compute_loss(every, labels))]
        except UserError:  # a loss of other targets than those of the validation split
            return None, None, None, "loss"
        whole.append(sum(parts) / len(parts))
        given, close = reported[0], SAME_LOSS * abs(reported[0])
    if any(abs(found - given) <= close for found in whole):
        verdict: str | None = "whole"
    elif len(parts) > 1 and abs(parts[-1] - given) <= close:
        verdict = "part"
    else:
        verdict = "" if by_name else None
    return verdict, whole[0], parts[-1], "accuracy" if by_name else "loss"


def _of_texts(right: Tensor, labels: Tensor) -> list[float]:
    """Return other accuracies that are right for texts: of whole texts, by text, and without a label of padding."""
    found = []
    for hidden in (IGNORED, int(labels[:, -1].mode().values)):
        counted = labels != hidden
        by_text = (right & counted).sum(dim=1) / counted.sum(dim=1)
        found += [right[counted], (right | ~counted).all(dim=1), by_text[~by_text.isnan()]]
    return [float(values.double().mean()) for values in found]


def _says_yes_or_no(trial: Trial, outputs: Tensor, labels: Tensor) -> bool:
    """Say whether outputs are probabilities of a yes, or their logits: those of a distance have another middle."""
    loss = stable_loss("binary", "probabilities" if are_probabilities(outputs) else "scores")
    if loss is None or outputs.shape != labels.shape:
        return False
    own = float(trial.experiment.compute_loss(outputs, labels))
    return abs(own - float(loss(outputs, labels))) <= EQUAL * abs(own)


def _even(outputs: Tensor) -> float:
    """Return the output at which both classes are equally likely: a probability of one half, or a logit of zero."""
    return 0.5 if are_probabilities(outputs) else 0.0


def _twice(
    model: nn.Module, evaluate: Callable[[nn.Module], _LossAndAccuracy]
) -> tuple[_LossAndAccuracy, _LossAndAccuracy, float]:
    """Evaluate twice; return both figures and the largest change of any buffer."""
    before = [buffer.clone() for buffer in model.buffers()]
    first, second = evaluate(model), evaluate(model)
    moved = [
        float(torch.where(new == old, 0.0, (new.double() - old.double()).abs()).max())  # a mask holds -inf
        for old, new in zip(before, model.buffers(), strict=True)
        if old.numel()
    ]
    return first, second, max(moved, default=0.0)


def _loss_distance(first: _LossAndAccuracy, second: _LossAndAccuracy) -> float:
    """Return the distance of two losses; 0 if neither is a number."""
    return 0.0 if _equal(first, second) else abs(second[0] - first[0]) or 1.0


def _equal(first: _LossAndAccuracy, second: _LossAndAccuracy) -> bool:
    """Say whether figures are equal; NaN equals itself."""
    return all(one == other or repr(one) == repr(other) for one, other in zip(first, second, strict=True))


def _distance(first: _LossAndAccuracy, second: _LossAndAccuracy) -> float:
    """Return the distance of the accuracies or, for a regression, the relative distance of the losses."""
    if first[1] is not None and second[1] is not None:
        return abs(first[1] - second[1])
    return abs(first[0] - second[0]) / max(abs(second[0]), 1e-12)
