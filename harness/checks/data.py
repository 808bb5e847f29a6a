"""What comes out of `load_data` and `prepare_batch`: shapes, ranges, labels, doubles, and who gets whose label."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from harness.checks.evidence import Cell, Evidence, Sheet, Table
from harness.checks.mechanisms import batch_pairing
from harness.checks.subject import Subject
from harness.run.input_sheet import input_sheet

# Of standard deviations of the training inputs between the means of the two splits, and of their ratio to one.
# Measured on the embedded sets: at most 0.01 and 0.02.
UNLIKE = 0.25
BATCHES = 5

Outcome = Literal["sound", "non-finite", "unpaired", "overlap", "unlike"]


@dataclass(frozen=True)
class SplitFigures:
    """One tensor of a split in figures; mean and deviation over all entries, in float64."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    mean: float
    deviation: float
    finite: bool


@dataclass(frozen=True)
class Data:
    """What the data look like to the network.

    `unpaired` is the share of examples that `prepare_batch` gives another example's label (None where the targets of a
    batch are no class indices);
    `relabelled` counts, of `looked_up` inputs in the first batches that are found in the training split, those that
    come with another label than there. `doubles` are equal inputs within the training split, within the validation
    split, and validation inputs that are in the training split too.
    """

    splits: tuple[SplitFigures, ...]
    histogram: dict[int, tuple[int, int, int]] | None
    unpaired: float | None
    looked_up: int
    relabelled: int
    doubles: tuple[int, int, int]
    sheet: dict[str, Any]

    @property
    def unlike(self) -> float:
        """How far the two splits' inputs lie apart: in mean, by training deviations, or in ratio of deviations."""
        train, validation = self.splits[0], self.splits[2]
        if train.deviation == 0.0:
            return 0.0 if validation.deviation == 0.0 else float("inf")
        shift = abs(train.mean - validation.mean) / train.deviation
        return max(shift, abs(validation.deviation / train.deviation - 1))

    @property
    def outcome(self) -> Outcome:
        """What came of it; the first that applies."""
        if not all(split.finite for split in self.splits):
            return "non-finite"
        if self.relabelled or (self.unpaired or 0.0) > 0.0:
            return "unpaired"
        if self.doubles[2]:
            return "overlap"
        return "unlike" if self.unlike > UNLIKE else "sound"


def measure(subject: Subject) -> Data:
    """Look at both splits, at the first batches as the network gets them, and at batches of our own making."""
    bench = subject.bench()
    training = (bench.inputs, bench.labels)
    keys, validation_keys = _keys(bench.inputs), _keys(bench.validation[0])
    known = dict(zip(keys, bench.labels, strict=True))
    batches = [batch for _, batch in zip(range(BATCHES), bench.batches(), strict=False)]
    found = [
        bool(torch.equal(known[key], label))
        for inputs, labels in batches
        for key, label in zip(_keys(inputs), labels, strict=True)
        if key in known and known[key].shape == label.shape
    ]
    inputs, labels = batches[0]
    comparable = not bench.labels.is_floating_point() and labels.dtype == bench.labels.dtype
    names = ("training inputs", "training targets", "validation inputs", "validation targets")
    tensors = (*training, *bench.validation, inputs, labels)
    return Data(
        splits=tuple(
            _figures(name, tensor)
            for name, tensor in zip((*names, "batch: inputs", "batch: targets"), tensors, strict=True)
        ),
        histogram=_histogram(bench.labels, bench.validation[1], labels) if comparable else None,
        unpaired=batch_pairing(subject.bench()) if comparable else None,
        looked_up=len(found),
        relabelled=found.count(False),
        doubles=(
            len(keys) - len(set(keys)),
            len(validation_keys) - len(set(validation_keys)),
            sum(key in known for key in validation_keys),
        ),
        sheet=input_sheet(inputs, labels, subject.tensors().class_names),
    )


def _keys(inputs: Tensor) -> list[bytes]:
    return [hashlib.sha256(row.contiguous().numpy().tobytes()).digest() for row in inputs.detach().cpu()]


def _figures(name: str, tensor: Tensor) -> SplitFigures:
    values = tensor.detach().double()
    deviation, mean = torch.std_mean(values, correction=0)
    return SplitFigures(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        low=float(values.min()),
        high=float(values.max()),
        mean=float(mean),
        deviation=float(deviation),
        finite=bool(values.isfinite().all()),
    )


def _histogram(train: Tensor, validation: Tensor, batch: Tensor) -> dict[int, tuple[int, int, int]]:
    counts = [Counter(part.tolist()) for part in (train, validation, batch)]
    classes = sorted(set().union(*counts))
    return {label: (counts[0][label], counts[1][label], counts[2][label]) for label in classes}


def show(measured: Data) -> Evidence:
    """Return the tables and the images with their labels."""
    figures: dict[str, Cell] = {
        "labels of another example, own batches": measured.unpaired,
        "labels not as loaded, first batches": f"{measured.relabelled} of {measured.looked_up}",
        "equal inputs within training": measured.doubles[0],
        "equal inputs within validation": measured.doubles[1],
        "validation inputs also in training": measured.doubles[2],
        "distance of the splits": measured.unlike,
    }
    splits = Table(
        caption="What load_data and prepare_batch return",
        columns=("tensor", "shape", "dtype", "least", "greatest", "mean", "deviation", "finite"),
        rows=tuple(
            (s.name, "x".join(map(str, s.shape)), s.dtype, s.low, s.high, s.mean, s.deviation, s.finite)
            for s in measured.splits
        ),
    )
    histogram = Table(
        caption="Examples by label",
        columns=("label", "training", "validation", "first batch"),
        rows=tuple((label, *counts) for label, counts in (measured.histogram or {}).items()),
    )
    return Evidence(
        what=f"both splits of load_data, the first {BATCHES} batches, and batches of grey images of our own",
        outcome=measured.outcome,
        said=(
            f"{measured.relabelled} of {measured.looked_up} labels not as loaded,"
            f" {measured.doubles[2]} validation inputs in training"
        ),
        figures=figures,
        tables=(splits, histogram) if measured.histogram else (splits,),
        sheet=Sheet.model_validate(measured.sheet),
    )
