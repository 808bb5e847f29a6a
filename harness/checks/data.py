"""Inspect tensors from `load_data` and `prepare_batch`: shapes, ranges, duplicates, and whether labels match inputs.

In the table of tensors, compare the rows of each split with the rows of the batch: shape, range and mean. Then look at
the images in `run.html`: below each image is the label that the network learns for it. The check itself tests four
properties:

- All values are finite.

- Every input keeps its label. If an input of the first batches is also in the training split, it must have the same
label in both. In addition, the check passes artificial images through `prepare_batch`. Each image has a single grey
value that grows with its label, so sorting the prepared images by brightness must also sort their labels. If
`prepare_batch` removes the brightness, for example because it standardizes each image, the check uses images whose
share of bright pixels grows with the label. For texts, the check uses rows of the training split.

- No validation input is in the training split. Texts may be in both splits, but the share of such texts may be at most
twice the share of training texts that occur more than once.

- Both splits have about the same mean and the same deviation.

The check does not know what the labels mean, so it cannot find labels that were already wrong in the data set.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, Table, percent, short
from harness.checks.core.loss import are_shares
from harness.checks.core.subject import Subject, Trial, worst
from harness.errors import UserError
from harness.run.evaluation import IGNORED

# figure                                  | healthy | broken   | bound              | source
# difference of the splits, in deviations | <= 0.02 |          | UNLIKE 0.25        | the included data sets
# difference of the symbol frequencies    | <= 0.11 | 0.24     | OTHER_SYMBOLS 0.18 | broken: a vocabulary per split
# chance that the check misses a shuffle  |         | 1 in 800 | DRAWS 30           | a shuffle of one batch in five
UNLIKE, OTHER_SYMBOLS = 0.25, 0.18
BATCHES = 5
DRAWS = 30
# With fewer examples, a shuffle within the batch would change almost nothing.
FEWEST = 16
SAME = 1e-4  # tolerance for differences of labels (in classes) and of inputs (in deviations)


def measure(subject: Subject) -> Finding:
    """Inspect both splits, the first prepared batches, and artificial batches with known pairs of input and label."""
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
    summary = f"{changed} labels changed since loading; {overlap} validation inputs are also in training"
    if outcome == "non-finite":
        summary = "; ".join(_not_finite(name, one) for name, one in tensors.items() if not one.isfinite().all())
    elif outcome == "unpaired" and all(kept):
        summary = f"in batches with known pairs, {percent(unpaired or 0.0)} of the inputs have another example's label"
    elif outcome == "unlike":
        summary = f"the inputs of the two splits have different distributions: their distance is {short(distance)}"
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
            Table("Tensors from load_data and prepare_batch", columns, rows),
            *_histogram(trial.labels, trial.validation[1], labels),
        ),
    )


def _not_finite(name: str, tensor: Tensor) -> str:
    rows = (~tensor.isfinite()).reshape(len(tensor), -1).any(dim=1)
    return f"{name}: not finite in {int(rows.sum())} of {len(rows)} rows, first in row {int(rows.int().argmax())}"


def _share_of_unpaired(subject: Subject) -> float | None:
    """Return the share of examples that get the target of another example in `prepare_batch`; None if unknown.

    For images, the check prepares artificial inputs whose brightness, or whose share of bright values, grows with the
    label.
    """
    trial = subject.trial()
    try:
        if not trial.inputs.is_floating_point():
            return worst([_share_of_moved(trial) for _ in range(DRAWS)])
        found = [_share_of_unsorted(trial, probe) for probe in (_bright, _partly_bright)]
    except (UserError, RuntimeError, IndexError):  # prepare_batch does not accept artificial inputs
        return None
    told = [share for share in found if share is not None]
    return min(told, default=None)


def _share_of_moved(trial: Trial) -> float:
    """Return the share of a batch of distinct training rows that get the label of another row in `prepare_batch`."""
    rows = list(dict.fromkeys(_keys(trial.inputs)))
    first = {key: at for at, key in reversed(list(enumerate(_keys(trial.inputs))))}
    chosen = torch.tensor([first[key] for key in rows[: max(trial.batch_size, FEWEST)]])
    inputs, labels = trial.inputs[chosen], trial.labels[chosen]
    given, targets = trial.prepare(inputs.clone(), labels.clone())
    if given.shape != inputs.shape or targets.shape != labels.shape:
        return 0.0
    # Assume that a prepared row comes from the training row with which it shares the most tokens.
    left = (given.flatten(1)[:, None] == inputs.flatten(1)[None]).double().mean(dim=2)
    source = left.argmax(dim=1)
    sure = left.amax(dim=1) > 0.5
    same = (targets == labels[source]) | (targets == IGNORED)
    return float((~same.view(len(same), -1).all(dim=1) & sure).double().mean())


def _bright(shares: Tensor, like: Tensor) -> Tensor:
    """Return rows in the shape of the rows of `like`, each filled with one of the values in `shares`."""
    return shares.to(like.dtype).view(-1, *[1] * (like.dim() - 1)).expand(-1, *like.shape[1:]).clone()


def _partly_bright(shares: Tensor, like: Tensor) -> Tensor:
    """Return rows of zeros and ones in the shape of the rows of `like`; a larger share gives more ones."""
    size = like[0].numel()
    places = torch.rand(size, generator=torch.Generator().manual_seed(0)).argsort().argsort()
    rows = places.unsqueeze(0) < (0.05 + 0.9 * shares).unsqueeze(1) * size
    return rows.to(like.dtype).view(-1, *like.shape[1:])


def _share_bright(rows: Tensor) -> Tensor:
    """Return the mean of each row after scaling the row to 0 to 1; standardizing a row does not change this mean."""
    low, high = rows.amin(dim=1), rows.amax(dim=1)
    return (rows.mean(dim=1) - low) / (high - low)


def _share_of_unsorted(trial: Trial, probe: Callable[[Tensor, Tensor], Tensor]) -> float | None:
    """Return the share of labels that are out of order when the prepared inputs are sorted by brightness.

    `probe` makes the artificial inputs. Return None if the prepared inputs or labels no longer show the original order.
    For a regression, the targets are numbers that grow with the brightness. `prepare_batch` may apply any increasing
    function to these targets, because they stay in order.
    """
    numbers = trial.labels.is_floating_point()
    # Augmentation may change all targets of an example, such as the coordinates of a point.
    if numbers and trial.labels[0].numel() > 1:
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
    """Return one number for each prepared target, for a soft label its mean class. If impossible, return None."""
    if given.dim() == labels.dim():
        return given.flatten(1).median(dim=1).values.double() if given.dim() > 1 else given.double()
    if given.dim() != 2 or not given.is_floating_point() or not are_shares(given):
        return None
    return given.double() @ torch.arange(given.shape[1]).double()


def _by_chance(inputs: Tensor, keys: list[bytes]) -> float:
    """Return which share of validation inputs may be in training: for texts, twice the share of repeated texts."""
    if inputs.is_floating_point():
        return 0.0
    counts = Counter(keys)
    return 2 * sum(count for count in counts.values() if count > 1) / len(keys)


def _keys(inputs: Tensor) -> list[bytes]:
    return [hashlib.sha256(row.contiguous().numpy().tobytes()).digest() for row in inputs.detach().cpu()]


def _distance(training: Tensor, validation: Tensor, *, symbols: bool) -> float:
    """Return the difference between the splits in mean or deviation, in units of the training deviation.

    For texts, return the difference between the token frequencies of both splits instead.
    """
    if symbols and len(training) > 1:
        return _other_shares(training, validation)
    deviation, mean = torch.std_mean(training, correction=0)
    other_deviation, other_mean = torch.std_mean(validation, correction=0)
    if not deviation:
        return 0.0 if not other_deviation else math.inf
    return float(max(abs(mean - other_mean) / deviation, abs(other_deviation / deviation - 1)))


def _other_shares(training: Tensor, validation: Tensor) -> float:
    """Return the total variation distance between the symbol frequencies of both splits, minus the random part.

    The random part is the distance between a sample of the training rows, as large as the validation split, and the
    other training rows.
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
