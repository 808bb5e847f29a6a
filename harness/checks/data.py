"""Looks at what `load_data` and `prepare_batch` return: shapes, ranges, labels, duplicates, and who gets whose label.

Compare the rows of a split with those of the batch: shapes, ranges, mean. Then look at the images in `run.html`: the
label below each is the one that the network is told. Four things are checked. All values are finite. Every input keeps
its label: an input of the first batches that is in the training split must have the label that it has there. In batches
of our own, each input has one grey value, which grows with its label: after `prepare_batch`, sorting by brightness must
sort the labels. No validation input is in the training split. Both splits are on one scale.

Sources of the bounds: a shuffle that happens to one batch in five escapes 30 draws once in 800. The two
splits of the embedded data sets differ by at most 0.02 of a deviation, in mean and in deviation; 0.25 counts
as unlike.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Check, Finding, Table, mechanism, sound
from harness.checks.core.subject import Subject, Trial, worst

CHECK = Check(
    order=20,
    question="Are the inputs and the labels what they should be?",
    minutes=3,
    outcomes=(
        sound("sound", "Values, labels and splits are in order: the data are ruled out.", "first_loss"),
        mechanism(
            "non-finite",
            "A tensor holds NaN or infinity before any network has seen it.",
            look="load_data and prepare_batch: what divides, and by what",
        ),
        mechanism(
            "unpaired",
            "Inputs reach the network with other labels than they were loaded with. No network can learn from that.",
            look="what happens to inputs and labels between load_data and the network",
        ),
        mechanism("overlap", "Validation inputs are in the training split too.", look="how load_data splits"),
        mechanism(
            "unlike",
            "The two splits are not on the same scale. What is learnt on one does not hold on the other.",
            look="how load_data normalizes each split",
        ),
    ),
)
UNLIKE = 0.25
BATCHES = 5
DRAWS = 30
# With fewer examples a shuffle within the batch would have next to nothing to mix.
FEWEST = 16


def measure(subject: Subject) -> Finding:
    """Look at both splits, at the first batches as the network gets them, and at batches of our own."""
    trial = subject.trial()
    keys, validation_keys = _keys(trial.inputs), _keys(trial.validation[0])
    known = dict(zip(keys, trial.labels, strict=True))
    batches = list(trial.batches(BATCHES))
    kept = [
        bool(torch.equal(known[key], label))
        for inputs, labels in batches
        for key, label in zip(_keys(inputs), labels, strict=True)
        if key in known and known[key].shape == label.shape
    ]
    inputs, labels = batches[0]
    tensors = {
        "training inputs": trial.inputs,
        "training targets": trial.labels,
        "validation inputs": trial.validation[0],
        "validation targets": trial.validation[1],
        "batch: inputs": inputs,
        "batch: targets": labels,
    }
    unpaired = _unpaired(subject.trial())
    overlap = sum(key in known for key in validation_keys)
    distance = _distance(trial.inputs.double(), trial.validation[0].double())
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        outcome = "non-finite"
    elif not all(kept) or not unpaired <= 0.0:
        outcome = "unpaired"
    elif overlap:
        outcome = "overlap"
    else:
        outcome = "unlike" if distance > UNLIKE else "sound"
    changed = f"{kept.count(False)} of {len(kept)}"
    columns = "tensor", "shape", "dtype", "least", "greatest", "mean", "deviation", "finite"
    rows = tuple(_row(name, tensor) for name, tensor in tensors.items())
    return Finding(
        outcome,
        f"{changed} labels not as loaded, {overlap} validation inputs in training",
        {
            "labels of another example, own batches": unpaired,
            "labels not as loaded, first batches": changed,
            "equal inputs within training": len(keys) - len(set(keys)),
            "equal inputs within validation": len(validation_keys) - len(set(validation_keys)),
            "validation inputs also in training": overlap,
            "distance of the splits": distance,
        },
        tables=(
            Table("What load_data and prepare_batch return", columns, rows),
            *_histogram(trial.labels, trial.validation[1], labels),
        ),
    )


def _unpaired(trial: Trial) -> float:
    """Return the share of examples that `prepare_batch` gives another example's target.

    Targets of a regression are constants that grow with the brightness: whatever monotonic function `prepare_batch`
    applies to them, sorting by brightness must sort them.
    """
    ranks = torch.arange(max(trial.batch_size, FEWEST)) % 10
    inputs = _spread(ranks, trial.inputs)
    labels = ranks if not trial.labels.is_floating_point() else _spread(ranks, trial.labels)
    wrong = []
    for _ in range(DRAWS):
        images, given = trial.prepare(inputs.clone(), labels.clone())
        # One-hot or soft targets stand for their largest entry.
        own = given if given.dim() == 1 else given.flatten(1)
        own = own.median(dim=1).values if own.dim() == 2 and labels.dim() > 1 else own
        own = own.argmax(dim=1) if own.dim() == 2 else own
        expected = own.sort().values if labels.is_floating_point() else ranks.sort().values
        by_brightness = own[images.flatten(1).median(dim=1).values.argsort(stable=True)]
        wrong.append((by_brightness != expected).double().mean().item())
    return worst(wrong)


def _spread(ranks: Tensor, like: Tensor) -> Tensor:
    """Return one constant a row, a tenth of its rank, in the shape of `like`'s rows."""
    rows = (ranks.to(like.dtype) / 10).view(-1, *[1] * (like.dim() - 1))
    return rows.expand(-1, *like.shape[1:]).clone()


def _keys(inputs: Tensor) -> list[bytes]:
    return [hashlib.sha256(row.contiguous().numpy().tobytes()).digest() for row in inputs.detach().cpu()]


def _distance(training: Tensor, validation: Tensor) -> float:
    """Return how far the inputs of the splits lie apart in mean or deviation, in deviations of the training split."""
    deviation, mean = torch.std_mean(training, correction=0)
    other_deviation, other_mean = torch.std_mean(validation, correction=0)
    if not deviation:
        return 0.0 if not other_deviation else math.inf
    return float(max(abs(mean - other_mean) / deviation, abs(other_deviation / deviation - 1)))


def _row(name: str, tensor: Tensor) -> tuple[Cell, ...]:
    values = tensor.detach().double()
    deviation, mean = torch.std_mean(values, correction=0)
    shape, dtype = "x".join(map(str, tensor.shape)), str(tensor.dtype).removeprefix("torch.")
    figures = (float(values.min()), float(values.max()), float(mean), float(deviation))
    return (name, shape, dtype, *figures, bool(values.isfinite().all()))


def _histogram(training: Tensor, validation: Tensor, batch: Tensor) -> Iterator[Table]:
    if training.is_floating_point() or batch.dtype != training.dtype or batch.dim() != 1:
        return
    counts = [Counter(part.tolist()) for part in (training, validation, batch)]
    rows = tuple((label, *(count[label] for count in counts)) for label in sorted(set().union(*counts)))
    yield Table("Examples by label", ("label", "training", "validation", "first batch"), rows)
