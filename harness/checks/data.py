"""Looks at what `load_data` and `prepare_batch` return: shapes, ranges, labels, duplicates, and who gets whose label.

Compare the rows of a split with those of the batch: shapes, ranges, mean. Then look at the images in `run.html`: the
label below each is the one that the network is told. Four things are checked. All values are finite. Every input keeps
its label: an input of the first batches that is in the training split must have the label that it has there. In batches
of our own, each input has one grey value, which grows with its label: after `prepare_batch`, sorting by brightness must
sort the labels. If it does not, as each image is standardized by itself, inputs whose share of bright values grows with
the label must be sorted by that share. Tokens are rows of the training split, and each must keep its label. No
validation input is in the training split; symbols may repeat themselves as often as within the training split. Both
splits are on one scale. What the labels mean is not checked.

Sources of the bounds: a shuffle that happens to one batch in five escapes 30 draws once in 800. The two
splits of the embedded data sets differ by at most 0.02 of a deviation, in mean and in deviation; 0.25 counts
as unlike. Symbols differ by the share that another symbol would have to replace: 0.11 and less in sound texts, and
0.24 with a vocabulary for each split (0.18).
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, Table
from harness.checks.core.loss import are_shares
from harness.checks.core.subject import Subject, Trial, worst
from harness.errors import UserError
from harness.run.evaluation import IGNORED

UNLIKE, OTHER_SYMBOLS = 0.25, 0.18
BATCHES = 5
DRAWS = 30
# With fewer examples a shuffle within the batch would have next to nothing to mix.
FEWEST = 16
SAME = 1e-4  # of a class, or of the deviation of the inputs


def measure(subject: Subject) -> Finding:
    """Look at both splits, at the first batches as the network gets them, and at batches of our own."""
    trial = subject.trial()
    keys, validation_keys = _keys(trial.inputs), _keys(trial.validation[0])
    known: dict[bytes, list[Tensor]] = {}
    for key, label in zip(keys, trial.labels, strict=True):
        known.setdefault(key, []).append(label)
    batches = list(trial.batches(BATCHES))
    kept = [
        any(bool(torch.equal(torch.where(label == IGNORED, label, one), label)) for one in known[key])
        for inputs, labels in batches
        for key, label in zip(_keys(inputs), labels, strict=True)
        if key in known and known[key][0].shape == label.shape
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
    unpaired = _share_of_unpaired(subject)
    overlap = sum(key in known for key in validation_keys)
    distance = _distance(
        trial.inputs.double(), trial.validation[0].double(), symbols=not trial.inputs.is_floating_point()
    )
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        outcome = "non-finite"
    elif not all(kept) or (unpaired or 0.0) > 0.0:
        outcome = "unpaired"
    elif overlap > _by_chance(trial.inputs, keys) * len(validation_keys):
        outcome = "overlap"
    else:
        outcome = "unlike" if distance > (UNLIKE if trial.inputs.is_floating_point() else OTHER_SYMBOLS) else "sound"
    changed = f"{kept.count(False)} of {len(kept)}"
    columns = "tensor", "shape", "dtype", "least", "greatest", "mean", "deviation", "finite"
    rows = tuple(_row(name, tensor) for name, tensor in tensors.items())
    summary = f"{changed} labels not as loaded, {overlap} validation inputs in training"
    if outcome == "non-finite":
        summary = "; ".join(_not_finite(name, one) for name, one in tensors.items() if not one.isfinite().all())
    return Finding(
        outcome,
        summary,
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


def _not_finite(name: str, tensor: Tensor) -> str:
    rows = (~tensor.isfinite()).reshape(len(tensor), -1).any(dim=1)
    return f"{name}: not finite in {int(rows.sum())} of {len(rows)} rows, first in row {int(rows.int().argmax())}"


def _share_of_unpaired(subject: Subject) -> float | None:
    """Return the share of examples that `prepare_batch` gives another example's target; None if no probe can tell.

    The probes are inputs of our own, of which brightness, or the share of bright values, grows with the label.
    """
    trial = subject.trial()
    try:
        if not trial.inputs.is_floating_point():
            return worst([_share_of_moved(trial) for _ in range(DRAWS)])
        found = [_share_of_unsorted(trial, probe) for probe in (_bright, _partly_bright)]
    except (UserError, RuntimeError, IndexError):  # prepare_batch is made for the inputs of the experiment alone
        return None
    told = [share for share in found if share is not None]
    return min(told, default=None)


def _share_of_moved(trial: Trial) -> float:
    """Return the share of a batch of different training rows that `prepare_batch` gives the label of another row."""
    rows = list(dict.fromkeys(_keys(trial.inputs)))
    first = {key: at for at, key in reversed(list(enumerate(_keys(trial.inputs))))}
    chosen = torch.tensor([first[key] for key in rows[: max(trial.batch_size, FEWEST)]])
    inputs, labels = trial.inputs[chosen], trial.labels[chosen]
    given, targets = trial.prepare(inputs.clone(), labels.clone())
    if given.shape != inputs.shape or targets.shape != labels.shape:
        return 0.0
    # A prepared row is that of which most symbols are left.
    left = (given.flatten(1)[:, None] == inputs.flatten(1)[None]).double().mean(dim=2)
    source = left.argmax(dim=1)
    sure = left.amax(dim=1) > 0.5
    same = (targets == labels[source]) | (targets == IGNORED)
    return float((~same.view(len(same), -1).all(dim=1) & sure).double().mean())


def _bright(shares: Tensor, like: Tensor) -> Tensor:
    """Return one constant a row, in the shape of `like`'s rows."""
    return shares.to(like.dtype).view(-1, *[1] * (like.dim() - 1)).expand(-1, *like.shape[1:]).clone()


def _partly_bright(shares: Tensor, like: Tensor) -> Tensor:
    """Return rows of zeros and ones in which so large a share is 1, at places drawn once, in the shape of `like`'s."""
    size = like[0].numel()
    places = torch.rand(size, generator=torch.Generator().manual_seed(0)).argsort().argsort()
    rows = places.unsqueeze(0) < (0.05 + 0.9 * shares).unsqueeze(1) * size
    return rows.to(like.dtype).view(-1, *like.shape[1:])


def _share_bright(rows: Tensor) -> Tensor:
    """Return where the mean of each row lies between its least and greatest value: no scaling of a row changes it."""
    low, high = rows.amin(dim=1), rows.amax(dim=1)
    return (rows.mean(dim=1) - low) / (high - low)


def _share_of_unsorted(trial: Trial, probe: Callable[[Tensor, Tensor], Tensor]) -> float | None:
    """Return the share of labels that are not sorted when the prepared inputs are sorted by what the probe varies.

    None if the prepared inputs, or the prepared labels, do not show it any more. Targets of a regression grow with
    the label: whatever monotonic function `prepare_batch` applies to them, sorting must sort them.
    """
    numbers = trial.labels.is_floating_point()
    if numbers and trial.labels[0].numel() > 1:  # several targets, such as a point, may rightly move with their input
        return None
    values = trial.labels.flatten().sort().values if numbers else trial.labels.flatten().unique()
    count = min(10, len(values) if numbers else int(values.max()) + 1)
    ranks = torch.arange(max(trial.batch_size, FEWEST)) % count
    inputs = probe(ranks / 10, trial.inputs)
    labels = ranks
    if numbers:
        levels = values[ranks * (len(values) - 1) // max(count - 1, 1)]
        labels = _bright(levels, trial.labels)
    wrong = []
    for _ in range(DRAWS):
        images, given = trial.prepare(inputs.clone(), labels.clone())
        own = _one_each(given, labels)
        if own is None or len(own) != len(ranks):
            return None
        rows = images.flatten(1).double()
        mixed = given.dim() > labels.dim()
        measure = (
            _share_bright(rows) if probe is _partly_bright else rows.mean(dim=1) if mixed else rows.median(dim=1).values
        )
        if not bool(measure.isfinite().all()) or float(measure.max() - measure.min()) < SAME * float(rows.std()):
            return None
        by_measure = own[measure.argsort(stable=True)]
        expected = own.sort().values if numbers or mixed else ranks.sort().values
        wrong.append(float(((by_measure - expected).abs() > SAME).double().mean()))
    return worst(wrong)


def _one_each(given: Tensor, labels: Tensor) -> Tensor | None:
    """Return one number for each prepared target: of shares of the classes, the mean class; None if there is none."""
    if given.dim() == labels.dim():
        return given.flatten(1).median(dim=1).values.double() if given.dim() > 1 else given.double()
    if given.dim() != 2 or not given.is_floating_point() or not are_shares(given):
        return None
    return given.double() @ torch.arange(given.shape[1]).double()


def _by_chance(inputs: Tensor, keys: list[bytes]) -> float:
    """Return which share of the validation inputs may be in training: of symbols, twice that of repeats in training."""
    if inputs.is_floating_point():
        return 0.0
    counts = Counter(keys)
    return 2 * sum(count for count in counts.values() if count > 1) / len(keys)


def _keys(inputs: Tensor) -> list[bytes]:
    return [hashlib.sha256(row.contiguous().numpy().tobytes()).digest() for row in inputs.detach().cpu()]


def _distance(training: Tensor, validation: Tensor, *, symbols: bool) -> float:
    """Return how far the inputs of the splits lie apart in mean or deviation, in deviations of the training split.

    Of symbols, the share that other ones have in validation.
    """
    if symbols and len(training) > 1:
        return _other_shares(training, validation)
    deviation, mean = torch.std_mean(training, correction=0)
    other_deviation, other_mean = torch.std_mean(validation, correction=0)
    if not deviation:
        return 0.0 if not other_deviation else math.inf
    return float(max(abs(mean - other_mean) / deviation, abs(other_deviation / deviation - 1)))


def _other_shares(training: Tensor, validation: Tensor) -> float:
    """Return half of the sum of the differences between the symbols' shares in both splits, less what is chance.

    Chance is what as many rows of training differ from its other rows.
    """
    every = max(len(training) // len(validation), 2)
    own = torch.arange(len(training)) % every == 0
    size = int(max(training.max(), validation.max())) + 1

    def distance_between(one: Tensor, other: Tensor) -> float:
        counts = (part.long().flatten().bincount(minlength=size).double() for part in (one, other))
        shares, others = (count / count.sum() for count in counts)
        return float((shares - others).abs().sum() / 2)

    return max(distance_between(training, validation) - distance_between(training[own], training[~own]), 0.0)


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
