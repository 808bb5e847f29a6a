"""Hands `load_data` a data set in which each validation example is a training example: both must come out the same.

The training examples are sorted by the sum of their values, and the validation split is the half with the larger sums
(of images the brighter half), with its labels. So what a split computes from its own examples alone (mean, deviation)
differs, and shows. An example must have the same values in both splits, and the same label. Augmentation belongs into
`prepare_batch`. An experiment that chooses its own rows is compared row by row, wherever they are; one that makes its
own data, or does not fit these, is left out.

Source of the bounds: `load_data` of the healthy experiments gives equal bits. Statistics of the brighter half move
inputs by 0.1 of a deviation and more (1e-3). Rows that were edited by their place may differ (5 % of them), and an
experiment about wrong labels may have a quarter of them; noise that is a fault changes 45 % and more (a third).
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject
from harness.data.datasets import Dataset, Split
from harness.errors import UserError

OFF, ROWS = 1e-3, 0.05
LABELS = 1 / 3

InputsAndLabels = tuple[Tensor, Tensor]


def measure(subject: Subject) -> Finding:
    """Load the made data set, and compare both splits row by row."""
    train = subject.data.train
    order = np.argsort(-train.inputs.reshape(len(train), -1).astype(np.int64).sum(axis=1), kind="stable")
    ordered = Split(train.inputs[order], train.labels[order])
    half = Split(ordered.inputs[: len(order) // 2], ordered.labels[: len(order) // 2])
    try:
        trial = replace(subject, data=Dataset.of(subject.data.name, ordered, half)).trial()
    except UserError:
        return Finding("own-data", "load_data does not take other data", {})
    inputs, labels = trial.inputs, trial.labels
    others, their_labels = trial.validation
    if inputs.shape[1:] != others.shape[1:] or torch.equal(inputs, subject.trial().inputs):
        return Finding("own-data", "load_data returns what it returned before", {})
    if len(inputs) != len(order) or len(others) != len(half):
        found = _anywhere((inputs, labels), (others, their_labels))
        if found.outcome == "other-inputs":
            if subject.tensors().table:
                return Finding("own-data", "load_data divides the rows of a table itself", {})
            rest = Split(ordered.inputs[len(half) :], ordered.labels[len(half) :])
            again = replace(subject, data=Dataset.of(subject.data.name, ordered, rest)).trial().validation[0]
            if torch.equal(again, others):
                return Finding("own-data", "load_data divides the training examples itself", {})
        return found
    deviation = max(float(inputs.double().std()), 1e-12)
    off = (inputs[: len(others)].double() - others.double()).abs().reshape(len(others), -1).amax(dim=1) / deviation
    unlike = float((off.nan_to_num() > OFF).double().mean())
    if unlike > ROWS and (found := _anywhere((inputs, labels), (others, their_labels))).outcome == "alike":
        return found
    relabelled = _share_of_relabelled(labels[: len(others)], their_labels)
    return _make_finding(unlike, relabelled)


def _anywhere(training: InputsAndLabels, validation: InputsAndLabels) -> Finding:
    """Compare rows of validation with equal ones of training; the smaller split must lie in the larger one."""
    small, large = sorted((training, validation), key=lambda split: len(split[0]))
    known = {row.numpy().tobytes(): place for place, row in enumerate(large[0])}
    places = [known.get(row.contiguous().numpy().tobytes()) for row in small[0]]
    pairs = [(here, there) for here, there in enumerate(places) if there is not None]
    if not pairs:
        return _make_finding(1.0, 0.0)
    mine, theirs = (torch.tensor(side) for side in zip(*pairs, strict=True))
    # A split of its own making may hold other rows: a fifth of them would not be equal by accident.
    return _make_finding(
        0.0 if len(pairs) > len(small[0]) / 5 else 1.0, _share_of_relabelled(small[1][mine], large[1][theirs])
    )


def _share_of_relabelled(labels: Tensor, others: Tensor) -> float:
    """Return the share of rows with another label; labels of another kind, such as soft ones, are not compared."""
    if labels.shape != others.shape or labels.dtype != others.dtype:
        return 0.0
    apart = (labels.double() - others.double()).abs().reshape(len(labels), -1).amax(dim=1)
    return float((apart > OFF * max(float(labels.double().std()), 1e-12)).double().mean())


def _make_finding(unlike: float, relabelled: float) -> Finding:
    figures: dict[str, Cell] = {"examples with other values": unlike, "examples with another label": relabelled}
    shares = [f"{short(100 * share, 3)} %" for share in (unlike, relabelled)]
    words = f"{shares[0]} of the examples differ in their values, {shares[1]} in the label"
    outcome = "other-inputs" if unlike > ROWS else "other-labels" if relabelled > LABELS else "alike"
    return Finding(outcome, words, figures)
