"""Call `evaluate` twice on the same network, call it again with the network forced into eval mode, and compare.

Before each call, the network is in training mode, as training leaves it. A correct evaluation has three properties:

- It is repeatable: two calls give the same values bit by bit, and neither call changes a buffer of the network (the
statistics of batch norm).

- It reports the metrics of eval mode: `evaluate` gives the same values if the network is forced to stay in eval mode.

- It uses the whole split. To test this, the check records the outputs of the network during `evaluate` and computes the
accuracy from them. For a regression, or for targets of another kind, it computes the loss instead.

The check accepts several accuracies: over all labels except -100, the mean recall of the classes, the mean accuracy per
text, the share of texts without a mistake, and the accuracy without padding. It also accepts the mean of batch losses.
It does not accept the mean of batch accuracies, because a last batch with few examples would count as much as a full
batch.

The check evaluates the network after the first six steps of the run. It also calls `evaluate` twice on a substitute
network with batch norm and dropout, because an `evaluate` that does not set eval mode is wrong even if the experiment's
network has neither of these layers. The check finds three more faults:

- `other-inputs`: training gives the network the inputs that `load_data` returns, but `evaluate` changes these inputs.

- `old-statistics`: `evaluate` uses a copy of the network, such as an average of its weights, but the copy still has the
initial statistics of batch norm.

- `scaled`: the reported loss for classes is a fixed fraction of the network's mean loss, as if it were divided by the
wrong number of examples. The check accepts logarithms to base 10 or to the number of classes.
"""

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from torch import Tensor, nn

from harness.checks.core.evaluation import (
    LossAndAccuracy,
    StandInNetwork,
    evaluate_twice,
    hold_mode,
    is_equal,
    loss_distance,
    metric_distance,
    record_evaluation,
    record_inputs,
    record_old_copies,
    share_changed,
)
from harness.checks.core.finding import Finding, Table, percent, short
from harness.checks.core.loss import are_probabilities, kind_of, mean_cross_entropy, stable_loss
from harness.checks.core.subject import Subject, Trial
from harness.errors import UserError
from harness.run.evaluation import IGNORED

# figure                                | healthy  | broken | bound          | source
# change of a buffer in two evaluations | 0        |        | REPEATS 1e-9   | equal bit by bit
# difference of accuracies              | <= 0.005 |        | SAME 0.005     | another order of additions
# relative difference of losses         | <= 0.01  |        | SAME_LOSS 0.01 | another order of additions
# share of inputs that evaluate changes | 0        |        | CHANGED 0.05   | healthy experiments, correct variants
# reported loss / mean loss             | 1        | 0.2    | PART 0.9       | divided by a wrong number
#
# PART: the broken run divides the sum of the validation losses by the number of training examples.
REPEATS = 1e-9
CHANGED, PART, EQUAL = 0.05, 0.9, 1e-3
SAME, SAME_LOSS = 5e-3, 1e-2
STEPS = 6


def measure(subject: Subject) -> Finding:
    """Evaluate the network after the first steps in several ways, and compare the results."""
    trial = subject.trial()
    start = copy.deepcopy(trial.model)
    with record_inputs(trial.model) as trained_on:
        for batch in trial.batches(STEPS):
            trial.step(*batch)

    def evaluate_copy(model: nn.Module) -> LossAndAccuracy:
        found = trial.experiment.evaluate(model, *trial.validation)
        return float(found["val_loss"] or 0.0), found["val_accuracy"]

    def evaluate_held(model: nn.Module) -> LossAndAccuracy:
        with hold_mode(model, training=False):
            return evaluate_copy(model)

    model = copy.deepcopy(trial.model).train()
    first, second, moved = evaluate_twice(model, evaluate_copy)
    trusted, trusted_again, _ = evaluate_twice(copy.deepcopy(trial.model).train(), evaluate_held)
    stand_in = None
    # An evaluate that needs the experiment's own network cannot use the substitute.
    with suppress(UserError, RuntimeError):
        own, again, changed = evaluate_twice(StandInNetwork(trial).train(), evaluate_copy)
        stand_in = max(loss_distance(own, again), changed)
    with record_old_copies(start, trial.model) as old_copies:
        outputs, evaluated_on, _ = record_evaluation(trial.model, evaluate_copy)
    factor = _factor(trial, evaluate_copy, start)
    changed_inputs = None
    # Test-time augmentation gives the network more inputs than the split has.
    as_many = sum(map(len, outputs)) == len(trial.validation[0])
    if trained_on and as_many and share_changed(trained_on, trial.inputs) == 0.0:
        changed_inputs = share_changed(evaluated_on, trial.validation[0])
    reported, whole, last, what = _as_reported(trial, outputs, first)
    repeats = is_equal(first, second) and moved <= REPEATS and (stand_in is None or stand_in <= REPEATS)
    faults = {
        "unrepeatable": not repeats,
        "other-mode": metric_distance(first, trusted) > SAME,
        "partial": reported == "part",
        "other-inputs": changed_inputs is not None and changed_inputs > CHANGED,
        "old-statistics": bool(old_copies),
        "scaled": factor is not None and factor < PART,
    }
    outcome = next((name for name, found in faults.items() if found), "other-mode" if reported == "" else "agree")
    columns = "evaluated", "loss", "loss again", "accuracy", "accuracy again"
    rows = (
        ("evaluate, as written", first[0], second[0], first[1], second[1]),
        ("evaluate, in eval mode", trusted[0], trusted_again[0], trusted[1], trusted_again[1]),
    )
    ways = first, second, trusted
    summary = _three(ways, "loss")
    if outcome == "unrepeatable":
        summary = _of_unrepeatable(ways, moved, stand_in)
    elif outcome == "other-mode" and metric_distance(first, trusted) > SAME:
        summary = _three(ways, "loss" if first[1] == trusted[1] else "accuracy")
    elif outcome in ("partial", "other-mode"):
        value = short(first[1] if what == "accuracy" else first[0])
        summary = f"{what} as written {value}, of all outputs {short(whole)}"
        if len(outputs) > 1:
            summary += f", of the last call {short(last)}"
    elif outcome == "other-inputs":
        summary = f"evaluate changes {percent(changed_inputs or 0.0)} of the inputs, and training changes none"
    elif outcome == "old-statistics":
        summary = f"copies of the network with the initial statistics: {len(old_copies)}"
    elif outcome == "scaled":
        summary = f"the reported loss {short(first[0])} is {short(factor)} times the mean loss of the network"
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


def _three(ways: Sequence[LossAndAccuracy], name: str) -> str:
    """Return the loss or the accuracy of `evaluate` as written, of a second call, and in eval mode."""
    written, again, in_eval_mode = (short(found[name == "accuracy"]) for found in ways)
    return f"{name} as written {written}, again {again}, in eval mode {in_eval_mode}"


def _of_unrepeatable(ways: Sequence[LossAndAccuracy], moved: float, stand_in: float | None) -> str:
    """Return the values that show that an evaluation cannot be repeated."""
    (loss, accuracy), (loss_again, accuracy_again), _ = ways
    if loss != loss_again or accuracy != accuracy_again:
        return _three(ways, "loss" if loss != loss_again else "accuracy")
    if not moved <= REPEATS:
        return f"an evaluation changes a buffer of the network by {short(moved)}"
    return f"on a network with batch norm and dropout, two evaluations differ by {short(stand_in)}"


def _factor(trial: Trial, written: Callable[[nn.Module], LossAndAccuracy], start: nn.Module) -> float | None:
    """Return the reported loss as a fraction of the network's mean loss, if it is the same fraction for three networks.

    Return None if the fractions differ, if the loss is not a mean over examples with classes, or if the reported loss
    uses logarithms to another base.
    """
    labels = trial.validation[1]
    larger = copy.deepcopy(trial.model)
    for parameter in larger.parameters():
        parameter.data.mul_(2)
    factors = []
    for network in (trial.model, start, larger):
        outputs, _, (reported, _) = record_evaluation(network, written)
        if labels.dim() != 1 or sum(map(len, outputs)) != len(labels):
            return None
        every = torch.cat(outputs)
        if kind_of(every, labels) != "classes":
            return None
        try:
            loss, twice = (
                float(trial.experiment.compute_loss(every.repeat(times, 1), labels.repeat(times))) for times in (1, 2)
            )
        except UserError:  # the loss needs targets that only prepare_batch makes
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
    trial: Trial, outputs: list[Tensor], reported: LossAndAccuracy
) -> tuple[str | None, float | None, float | None, str]:
    """Compare the metric that `evaluate` reports with the metric that the recorded outputs give.

    Return four values: which part of the split the reported metric covers, the metric of all outputs, the metric of the
    last call, and the name of the metric. The first value is "whole" if all outputs together give the reported metric,
    "part" if only a part of the split was used, and "" if no outputs give this metric. The first value is None if the
    check cannot know, because `evaluate` calls the network in another way or more than once per example, or because it
    reports another quantity than the loss.
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
        except UserError:  # the loss needs targets that only prepare_batch makes
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
    """Return further accuracies that are correct for texts: of whole texts, averaged over texts, without padding."""
    found = []
    for hidden in (IGNORED, int(labels[:, -1].mode().values)):
        counted = labels != hidden
        by_text = (right & counted).sum(dim=1) / counted.sum(dim=1)
        found += [right[counted], (right | ~counted).all(dim=1), by_text[~by_text.isnan()]]
    return [float(values.double().mean()) for values in found]


def _says_yes_or_no(trial: Trial, outputs: Tensor, labels: Tensor) -> bool:
    """Return whether outputs are probabilities or logits of class 1; distances, for example, are neither."""
    loss = stable_loss("binary", "probabilities" if are_probabilities(outputs) else "scores")
    if loss is None or outputs.shape != labels.shape:
        return False
    own = float(trial.experiment.compute_loss(outputs, labels))
    return abs(own - float(loss(outputs, labels))) <= EQUAL * abs(own)


def _even(outputs: Tensor) -> float:
    """Return the output at which both classes are equally likely: 0.5 for probabilities, 0 for logits."""
    return 0.5 if are_probabilities(outputs) else 0.0
