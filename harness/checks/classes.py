"""Train for at most 100 steps, and measure for each class the share of its validation examples that the network finds.

The network finds an example of a class if it predicts this class for the example. The overall accuracy hides a class
that the network never predicts: one of ten classes costs only 10 % of the accuracy, and a rare class costs almost
nothing.

`left-out`: the network finds almost no example of one class, but most examples of the other classes. Before the check
reports this outcome, it trains for 200 more steps. If the network finds too few examples of most classes, it has not
learnt enough, and the check does not judge it.

The check skips three kinds of classes: classes with less than half the mean number of training examples, classes with
fewer than 5 validation examples, and labels that only pad sequences.

`renamed`: for most examples of a class, the network predicts one other class. This happens for at least two classes,
and they do not all become the same class. So labels have different meanings in training and in validation.
"""

import copy
from statistics import median

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, Trial
from harness.run.evaluation import is_classification

# figure                                | healthy | broken | bound      | source
# recall of the median class            | >= 0.85 |        | FOUND 0.85 | healthy experiments
# recall of the worst class             | >= 0.4  | 0      | LOST 0.05  | a loss that ignores a class
# share of a class with one wrong label |         | 0.98   | FOUND 0.85 | classes with new numbers in one split
#
# In the shortest healthy runs, the median recall is 0.77, and one class has a recall of 0. So the check judges only
# networks with a median recall above 0.85. If the loss ignores one class, the median recall of the other classes is
# 0.92.
STEPS = 100
FEWEST = 5  # a class with fewer validation examples is skipped
RARE = 0.5  # a class with fewer training examples than this share of the mean is rare
FOUND, LOST = 0.85, 0.05
COLUMNS = ("class", "training", "validation", "predicted", "found")


def measure(subject: Subject) -> Finding:
    """Train, then compare the predictions for the validation split with its labels, for each class."""
    trial = subject.trial()
    inputs, labels = trial.validation
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(inputs)
    except RuntimeError:  # the network accepts only inputs that evaluate has changed
        return Finding("no-classes", "the network does not accept the validation inputs as load_data returns them", {})
    if not is_classification(outputs, labels):
        return Finding("no-classes", f"outputs {tuple(outputs.shape)}, labels {tuple(labels.shape)}", {})
    rows, outcome, names = _rows(trial, min(STEPS, trial.steps))
    if outcome == "left-out":
        rows, outcome, names = _rows(trial, 2 * STEPS)
    least, usual = _shares_found(rows)
    summary = f"share of examples found: worst class {short(least)}, median of the other classes {short(usual)}"
    if outcome == "renamed":
        summary = "most examples of " + ", ".join(
            f"class {one} are predicted as {other}" for one, other in names.items()
        )
    return Finding(
        outcome,
        summary,
        {"found of the worst class": least, "median of the other classes": usual},
        tables=(Table("Validation, by class", COLUMNS, tuple(rows)),),
    )


def _rows(trial: Trial, steps: int) -> tuple[list[tuple[Cell, ...]], str, dict[int, int]]:
    """Train for `steps` more steps; return a table row for each class, the outcome, and {class: other prediction}.

    The dict contains the classes for most of whose examples the network predicts another class.
    """
    for batch in trial.batches(steps):
        trial.step(*batch)
    inputs, labels = trial.validation
    with torch.no_grad():
        outputs = copy.deepcopy(trial.model).eval()(inputs)
    predicted = outputs.argmax(dim=-1)
    rows: list[tuple[Cell, ...]] = []
    names: dict[int, int] = {}
    for label in range(outputs.shape[-1]):
        own, training = labels == label, int((trial.labels == label).sum())
        counts = predicted[own].bincount(minlength=outputs.shape[-1])
        size = int(own.sum())
        recall = float(counts[label] / size) if size and not _is_padding(labels, label) else None
        if size >= FEWEST and int(counts.argmax()) != label and float(counts.max() / size) > FOUND:
            names[label] = int(counts.argmax())
        rows.append((str(label), training, size, int((predicted == label).sum()), recall))
    least, usual = _shares_found(rows)
    if len({*names.values()}) >= 2 and labels.dim() == 1:
        return rows, "renamed", names
    outcome = "left-out" if least < LOST and usual > FOUND else "all-found" if usual > FOUND else "too-early"
    return rows, outcome, names


def _is_padding(labels: Tensor, label: int) -> bool:
    """Return whether a label of sequences (B, T) occurs only at their ends: the network need not learn such padding."""
    here = labels == label
    return labels.dim() == 2 and bool((here.flip(1).long().cumprod(dim=1).flip(1).bool() == here).all())


def _shares_found(rows: list[tuple[Cell, ...]]) -> tuple[float, float]:
    """Return the lowest recall of the classes that are not rare, and the median recall of the other classes."""
    enough = sum(int(row[1] or 0) for row in rows) / len(rows) * RARE
    recalls = sorted(
        float(row[4])
        for row in rows
        if row[4] is not None and int(row[2] or 0) >= FEWEST and int(row[1] or 0) >= enough
    )
    return min(recalls, default=0.0), median(recalls[1:] or [0.0])
