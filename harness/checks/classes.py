"""Trains for at most 100 steps and looks at each class: how many of its validation examples are found?

A mean accuracy hides a class that is never predicted: one of ten costs 10 %, a rare one next to nothing. A class counts
as left out if the network finds hardly any of its examples while it finds most of those of the other classes. A network
that finds little of any class has learnt too little for this check. A class that is left out gets twice as many steps
again. Of classes that are rare in training, less than half the usual number, nothing is expected so soon, and of a
label that only pads sequences nothing at all.

A network may also find the classes and call them otherwise: if most examples of two classes or more are each taken for
one other class, and not all for the same one, labels mean different things in training and in validation.

Sources of the bounds, over the healthy experiments: those whose median class is found to 0.85 find 0.4 and more of each
class, and to 0.77, in the shortest runs, nothing of one (0.85). A loss that ignores a class finds nothing of it, and
0.92 of the others (0.05). With renamed labels 0.98 of a class get one wrong name (0.85).
"""

import copy
from statistics import median

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, Trial
from harness.run.evaluation import is_classification

STEPS = 100
FEWEST = 5
RARE = 0.5
FOUND, LOST = 0.85, 0.05
COLUMNS = ("class", "training", "validation", "predicted", "found")


def measure(subject: Subject) -> Finding:
    """Train, then compare predictions with labels, class by class."""
    trial = subject.trial()
    inputs, labels = trial.validation
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(inputs)
    except RuntimeError:  # evaluate gives the network other inputs than load_data returns
        return Finding("no-classes", "the network does not take the validation inputs as they are loaded", {})
    if not is_classification(outputs, labels):
        return Finding("no-classes", f"outputs {tuple(outputs.shape)}, labels {tuple(labels.shape)}", {})
    rows, outcome = _rows(trial, min(STEPS, trial.steps))
    if outcome == "left-out":
        rows, outcome = _rows(trial, 2 * STEPS)
    least, usual = _shares_found(rows)
    return Finding(
        outcome,
        f"least share of a class that is found {short(least)}, median of the others {short(usual)}",
        {"found of the worst class": least, "median of the other classes": usual},
        tables=(Table("Validation, by class", COLUMNS, tuple(rows)),),
    )


def _rows(trial: Trial, steps: int) -> tuple[list[tuple[Cell, ...]], str]:
    """Train for so many more steps; return a row for each class, and the outcome."""
    for batch in trial.batches(steps):
        trial.step(*batch)
    inputs, labels = trial.validation
    with torch.no_grad():
        outputs = copy.deepcopy(trial.model).eval()(inputs)
    predicted = outputs.argmax(dim=-1)
    rows: list[tuple[Cell, ...]] = []
    other_names = set[int]()
    for label in range(outputs.shape[-1]):
        own, training = labels == label, int((trial.labels == label).sum())
        counts = predicted[own].bincount(minlength=outputs.shape[-1])
        size = int(own.sum())
        recall = float(counts[label] / size) if size and not _is_padding(labels, label) else None
        if size >= FEWEST and int(counts.argmax()) != label and float(counts.max() / size) > FOUND:
            other_names.add(int(counts.argmax()))
        rows.append((str(label), training, size, int((predicted == label).sum()), recall))
    least, usual = _shares_found(rows)
    if len(other_names) >= 2 and labels.dim() == 1:
        return rows, "renamed"
    return rows, "left-out" if least < LOST and usual > FOUND else "all-found" if usual > FOUND else "too-early"


def _is_padding(labels: Tensor, label: int) -> bool:
    """Say whether a label of sequences (B, T) stands only at their ends: no loss need teach it."""
    here = labels == label
    return labels.dim() == 2 and bool((here.flip(1).long().cumprod(dim=1).flip(1).bool() == here).all())


def _shares_found(rows: list[tuple[Cell, ...]]) -> tuple[float, float]:
    """Return the share found of the worst of the classes that are not rare, and the median of the others."""
    enough = sum(int(row[1] or 0) for row in rows) / len(rows) * RARE
    recalls = sorted(
        float(row[4])
        for row in rows
        if row[4] is not None and int(row[2] or 0) >= FEWEST and int(row[1] or 0) >= enough
    )
    return min(recalls, default=0.0), median(recalls[1:] or [0.0])
