"""Change raw examples and see what else changes: does anything from validation reach training?

First, the check finds out from which raw example each loaded example comes. It calls `load_data` many times and changes
a different set of raw examples before each call. The calls in which a loaded example changes reveal from which raw
example it comes. This works even if `load_data` standardizes the values, adds noise or columns, or samples the rows.
Then the check tests four properties:

- No raw example is in both splits, not even in a changed form.

- If the table comes with a split that keeps groups apart, the split of the experiment does so, too: no value of the
first column (patient, machine, week) is in both splits. If the validation rows of the given split are later than its
training rows, the experiment trains on no row that is later than its first validation row.

- No training value changes, not even by a single bit, if the check changes only validation rows. For example, a mean
over all rows would change training values.

- The network does not depend on a single column. The check trains for at most 300 steps, then shuffles one raw column
after the other within the validation rows. If the network is almost perfect and needs only one column, this column
probably contains the answer.

The check cannot trace rows that the experiment mixes, generates, or drops depending on their values. Then the outcome
is `untraced`. It is `one-column` instead if sorting the rows of both splits by a single column also sorts all labels.
"""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from harness.canonical_setup import seed_everything
from harness.checks.core.finding import Cell, Finding, Table, short
from harness.checks.core.subject import Subject, worst
from harness.data import DATASETS
from harness.data.datasets import Split
from harness.run.experiment import tensor_data

# figure                                 | healthy      | broken       | bound       | source
# examples traced                        | >= 0.998     |              | TRACED 0.99
# change in one call / in the other call | >= 2         |              | CLEAR 2     | for each traced example
# cost of the most important column      |              | 0.93 to 0.99 | ALONE 0.8   | 1: cost of shuffling all columns
# cost of the next column                | >= 0.6       | <= 0.02      | OTHERS 0.2
# loss / loss with all columns shuffled  | 0.03 to 0.14 | 0.002        | PERFECT 0.1
#
# Measured over ten seeds of the experiments on tables, with and without a leak. In the last two rows, the healthy
# networks are almost as good as the networks with a leak, but they depend on two columns or more.
STEPS = 300
CLEAR = 2.0
NUDGE = 1e-5  # the small change of a raw value, in deviations of its column
TRACED = 0.99
MOST_COLUMNS = 200
PERFECT = 0.1
ALONE = 0.8
OTHERS = 0.2

Loaded = tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]


def measure(subject: Subject) -> Finding:
    """Find the raw example of each example, change the validation rows, and shuffle one column after the other."""
    raw = _Raw(subject)
    traces = raw.trace()
    found = [trace[trace >= 0] for trace in traces]
    traced = sum(map(len, found)) / sum(map(len, traces))
    if traced < TRACED:
        untraced: dict[str, Cell] = {
            "examples traced": traced,
            "column that tells the label": _find_telling_column(subject),
        }
        told = untraced["column that tells the label"] is not None
        words = f"{short(traced)} of the examples traced"
        if told:
            words += f"; column {untraced['column that tells the label']} alone tells the label"
        return Finding("one-column" if told else "untraced", words, untraced)
    training, validation = found
    shared = len(_both(training, validation))
    rows = raw.inputs[:, 0] if raw.columns else None
    groups = 0 if rows is None else len(_both(rows[training], rows[validation]))
    later = 0.0 if rows is None else float((rows[training] > rows[validation].min()).mean())
    moved = raw.training_moves(validation)
    loss, chance, shares = raw.column_shares(validation)
    column, second = ([*sorted(shares, key=lambda name: -shares[name]), None, None])[:2]
    if shared:
        outcome = "overlap"
    elif raw.in_time and later:
        outcome = "future"
    elif raw.apart and groups:
        outcome = "groups"
    elif moved:
        outcome = "statistics"
    elif column and second and loss < PERFECT * chance and shares[column] > ALONE and shares[second] < OTHERS:
        outcome = "one-column"
    else:
        outcome = "sound"
    figures: dict[str, Cell] = {
        "examples traced": traced,
        "raw examples in both splits": shared,
        "groups in both splits": groups,
        "training rows later than the first validation row": later,
        "largest change of training, validation rows changed": moved,
    }
    if column and second:
        figures |= {
            "validation loss": loss,
            "validation loss, all columns shuffled": chance,
            "share of the most important column": shares[column],
            "that column": column,
            "share of the next column": shares[second],
        }
    if outcome == "one-column" and column and second:
        words = (
            f"shuffling column {column} costs {short(shares[column])} of the cost of shuffling all columns,"
            f" and shuffling the next column {short(shares[second])}"
        )
        return Finding(outcome, words, figures, _costs(shares))
    return Finding(
        outcome,
        f"{shared} raw examples and {groups} groups in both splits; training changes with validation by {short(moved)}"
        + (f"; {short(later)} of the training rows are later than the first validation row" if raw.in_time else ""),
        figures,
        _costs(shares),
    )


def _costs(shares: dict[str, float]) -> tuple[Table]:
    return (Table("Cost of shuffling a column (all columns: 1)", ("column", "share"), tuple(shares.items())),)


class _Raw:
    """The raw examples of both splits in one array, with methods that change some of them and call `load_data`.

    `columns` contains the names of a table's columns. `apart` and `in_time` describe the split with which the data set
    comes. `apart`: values of the first column repeat, but no value is in both splits. `in_time`: in addition, all
    validation values of the first column are larger than all training values.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, data = subject, subject.data
        self.inputs = np.concatenate([data.train.inputs, data.validation.inputs])
        self.labels = np.concatenate([data.train.labels, data.validation.labels])
        self.columns = DATASETS[data.name].columns[:-1]
        own, other = data.train.inputs[:, 0], data.validation.inputs[:, 0]
        self.apart = bool(self.columns) and not len(_both(own, other)) and len(np.unique(other)) < len(other)
        self.in_time = self.apart and bool(own.max() < other.min())

    def load(self, inputs: NDArray[Any], labels: NDArray[Any] | None = None) -> Loaded:
        """Return the output of `load_data` for changed inputs (and targets), with the same random numbers each time."""
        seed_everything(self.subject.settings.seed)
        labels, end = self.labels if labels is None else labels, len(self.subject.data.train)
        splits = [Split(inputs[part], labels[part]) for part in (slice(None, end), slice(end, None))]
        data = replace(self.subject.data, train=splits[0], validation=splits[1])
        return self.subject.experiment().load_data(tensor_data(data))

    def nudge(self, which: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the inputs with small changes in some rows; if they are not a table, exchange whole examples instead.

        The changes are small, so that a filter such as "age above 50" selects the same rows as before. Columns of whole
        numbers do not change.
        """
        if not self.columns:
            return self.exchange(which)
        signs = np.random.RandomState(0).choice([-1.0, 1.0], self.inputs.shape)
        whole = (self.inputs == np.round(self.inputs)).all(axis=0)
        change = np.where(whole, 0.0, NUDGE * self.inputs.std(axis=0)) * signs * which[:, None]
        return np.asarray(self.inputs + change, self.inputs.dtype)

    def exchange(self, which: NDArray[np.bool_]) -> NDArray[Any]:
        """Return the inputs with some rows replaced by distant rows; the first column of a table does not change."""
        changed = self.inputs.copy()
        first = 1 if self.columns else 0
        changed[which, first:] = np.roll(self.inputs, len(self.inputs) // 2, axis=0)[which, first:]
        return changed

    def trace(self) -> list[NDArray[np.int64]]:
        """Return the number of the raw row behind each training and each validation input; -1 if unknown.

        For each binary digit of the row numbers, `load_data` is called twice: first after the rows whose digit is 1 are
        changed, then after the rows whose digit is 0 are changed. Each loaded input changes in one of the two calls,
        which reveals the digit of its raw row.
        """
        before = self.load(self.inputs)
        old = [_columns(inputs) for inputs, _ in before]
        deviations = [values.std(dim=0, correction=0) for values in old]
        numbers = np.arange(len(self.inputs))
        traces = [np.zeros(len(inputs), np.int64) for inputs, _ in before]
        for place in range(len(numbers).bit_length()):
            ones = (numbers >> place & 1).astype(bool)
            with_one, with_zero = (self.load(self.nudge(which)) for which in (ones, ~ones))
            for split, trace in enumerate(traces):
                (own, _), (one, _), (zero, _) = before[split], with_one[split], with_zero[split]
                if not own.shape == one.shape == zero.shape:
                    trace[:] = -1
                    continue
                far, near = (_distance(old[split], _columns(new), deviations[split]) for new in (one, zero))
                unclear = np.maximum(far, near) <= CLEAR * np.minimum(far, near)
                trace[:] = np.where(unclear | (trace < 0), -1, trace | (far > near).astype(np.int64) << place)
        return [np.where(trace < len(numbers), trace, -1) for trace in traces]

    def training_moves(self, validation: NDArray[np.int64]) -> float:
        """Return the largest change of a training value when the validation rows are replaced."""
        which = np.isin(np.arange(len(self.inputs)), validation)
        labels = self.labels.copy()
        if labels.dtype.kind == "f":  # keep classes: a correct split may depend on them
            labels[which] = np.roll(labels, len(labels) // 2)[which]
        before, after = self.load(self.inputs)[0], self.load(self.exchange(which), labels)[0]
        if any(old.shape != new.shape for old, new in zip(before, after, strict=True)):
            return math.inf
        changes = [
            (old.double() - new.double()).nan_to_num(0.0).abs().max() for old, new in zip(before, after, strict=True)
        ]
        return worst([change.item() for change in changes])

    def column_shares(self, validation: NDArray[np.int64]) -> tuple[float, float, dict[str, float]]:
        """Train for a few steps, then shuffle columns of a table within the validation rows.

        Return three values: the validation loss, the validation loss after all columns are shuffled, and for each
        column the share of this increase that shuffling this column alone causes.
        """
        if not self.columns:
            return math.nan, math.nan, {}
        trial = self.subject.trial()
        for batch in trial.batches(min(STEPS, trial.steps)):
            trial.step(*batch)
        model = copy.deepcopy(trial.model).eval()
        rows = np.unique(validation)
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0)).numpy()

        @torch.no_grad()
        def loss(*columns: int) -> float:
            inputs = self.inputs.copy()
            for column in columns:
                inputs[rows, column] = self.inputs[rows[order], column]
            loaded, targets = self.load(inputs)[1]
            return float(trial.experiment.compute_loss(model(loaded), targets))

        numbers = range(1, len(self.columns))
        least, most = loss(), loss(*numbers)
        if not most > least:  # a network with one output for all rows depends on no column
            return least, most, {}
        shares = {self.columns[number]: (loss(number) - least) / (most - least) for number in (0, *numbers)}
        return least, most, shares


def _find_telling_column(subject: Subject) -> int | None:
    """Return the index of the only column by which sorting the rows also sorts all labels; None if there is none."""
    trial = subject.trial()
    rows = torch.cat([trial.inputs, trial.validation[0]])
    labels = torch.cat([trial.labels, trial.validation[1]]).double()
    if rows.dim() != 2 or not rows.is_floating_point() or not 1 < rows.shape[1] <= MOST_COLUMNS:
        return None
    if labels.numel() != len(rows) or len(labels.unique()) < 2:
        return None
    found = []
    for column, values in enumerate(rows.double().T):
        order = values.argsort(stable=True)
        own, sorted_labels = values[order], labels.flatten()[order]
        steps = sorted_labels.diff()
        in_order = bool((steps >= 0).all()) or bool((steps <= 0).all())
        if in_order and not bool(((own.diff() == 0) & (steps != 0)).any()):
            found.append(column)
    return found[0] if len(found) == 1 else None


def _columns(inputs: Tensor) -> Tensor:
    """Return at most MOST_COLUMNS values of each example in float64; values that are not finite become 0."""
    width = inputs[0].numel()
    some = slice(None, None, width // MOST_COLUMNS + 1)
    return inputs.reshape(-1, width)[:, some].double().nan_to_num(0.0, 0.0, 0.0)


def _distance(old: Tensor, new: Tensor, deviation: Tensor) -> NDArray[np.float64]:
    """Return how far each example moved: the sum of its changes over all columns, each at most one deviation."""
    moved = (old - new).abs() / torch.where(deviation > 0, deviation, 1.0)
    return moved.clamp(max=1.0).sum(dim=1).numpy()


def _both(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    return np.intersect1d(one, other)
