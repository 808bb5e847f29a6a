"""Give `load_data` a data set whose validation examples are also training examples, and compare both copies.

To construct this data set, the check sorts the training examples by the sum of their values. It also uses the half with
the larger sums (the brighter images), with its labels, as the validation split. If `load_data` computes statistics
(mean, deviation) for each split alone, these statistics differ, and the check sees the difference. An example must have
the same values and the same label in both splits. Augmentation belongs in `prepare_batch`, not in `load_data`.

If `load_data` selects some of the rows itself, the check compares equal rows, wherever they are in the splits. It does
not judge an experiment that makes its own data, or that does not accept the constructed data set.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, short
from harness.checks.core.subject import Subject
from harness.data.datasets import Dataset, Split
from harness.errors import UserError

# figure                                | healthy | broken  | bound      | source
# difference of an input, in deviations | 0       | >= 0.1  | OFF 1e-3   | statistics of the brighter half
# rows with other values                |         |         | ROWS 5 %   | rows edited by their position may differ
# rows with another label               | <= 25 % | >= 45 % | LABELS 1/3 | random labels: on purpose; by mistake
OFF, ROWS = 1e-3, 0.05
LABELS = 1 / 3

InputsAndLabels = tuple[Tensor, Tensor]


def measure(subject: Subject) -> Finding:
    """Load the constructed data set, and compare both splits row by row."""
    train = subject.data.train
    order = np.argsort(-train.inputs.reshape(len(train), -1).astype(np.int64).sum(axis=1), kind="stable")
    ordered = Split(train.inputs[order], train.labels[order])
    half = Split(ordered.inputs[: len(order) // 2], ordered.labels[: len(order) // 2])
    try:
        trial = replace(subject, data=Dataset.of(subject.data.name, ordered, half)).trial()
    except UserError:
        return Finding("own-data", "load_data does not accept other data", {})
    inputs, labels = trial.inputs, trial.labels
    others, their_labels = trial.validation
    if inputs.shape[1:] != others.shape[1:] or torch.equal(inputs, subject.trial().inputs):
        return Finding("own-data", "load_data returns the same data as before", {})
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
    """Compare the labels of equal rows in the two splits, wherever in its split each row is."""
    small, large = sorted((training, validation), key=lambda split: len(split[0]))
    known = {row.numpy().tobytes(): place for place, row in enumerate(large[0])}
    places = [known.get(row.contiguous().numpy().tobytes()) for row in small[0]]
    pairs = [(here, there) for here, there in enumerate(places) if there is not None]
    if not pairs:
        return _make_finding(1.0, 0.0)
    mine, theirs = (torch.tensor(side) for side in zip(*pairs, strict=True))
    # An experiment may select its own rows, so only some rows are in both splits. If more than a fifth of the rows are
    # in both splits, this is no accident, and their values count as equal.
    return _make_finding(
        0.0 if len(pairs) > len(small[0]) / 5 else 1.0, _share_of_relabelled(small[1][mine], large[1][theirs])
    )


def _share_of_relabelled(labels: Tensor, others: Tensor) -> float:
    """Return the share of rows whose labels differ; 0 if the labels are of different kinds, such as soft labels."""
    if labels.shape != others.shape or labels.dtype != others.dtype:
        return 0.0
    apart = (labels.double() - others.double()).abs().reshape(len(labels), -1).amax(dim=1)
    return float((apart > OFF * max(float(labels.double().std()), 1e-12)).double().mean())


def _make_finding(unlike: float, relabelled: float) -> Finding:
    figures: dict[str, Cell] = {"examples with other values": unlike, "examples with another label": relabelled}
    shares = [f"{short(100 * share, 3)} %" for share in (unlike, relabelled)]
    words = f"{shares[0]} of the examples differ in their values, {shares[1]} in their label"
    outcome = "other-inputs" if unlike > ROWS else "other-labels" if relabelled > LABELS else "alike"
    return Finding(outcome, words, figures)
