"""Compare the distribution of each feature, and the share of each class, between the two splits.

The check `data` compares the splits as a whole: one mean and one deviation. This check looks at each feature alone. For
a table, a feature is a column. For images, the features are the mean, the deviation, the least and the greatest value
of an image; for texts, the share of each symbol in a text. For each feature, the check computes

- the statistic of Kolmogorov and Smirnov (KS): the largest distance between the two cumulative distributions, from 0 to
1;

- the population stability index (PSI): the sum of (p - q) ln(p / q) over ten bins with equal shares of the training
rows. A PSI above 0.25 is usually called a large drift.

A drift is not always a fault. If validation contains later weeks or other machines than training, features drift, and
this is honest: the service will see other weeks, too. A *missing* drift between such splits may even be a sign of
leakage. So the check calls a drift sound, and shows it. It reports a feature that has nothing in common in the two
splits: such a feature was prepared in another way, or is another column. It also reports a class whose share differs
more than the random choice of rows can explain.
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Finding, Table, short
from harness.checks.core.subject import Subject
from harness.run.evaluation import IGNORED

# figure                             | healthy | broken | bound       | source
# largest KS of a feature            | <= 0.75 | 1      | APART 0.9   | healthy: later weeks; broken: column_order
# PSI of a feature                   | <= 3.8  | 6.0    | DRIFTS 0.25 | at most 0.19 if the split is random; no fault
# difference of a share, deviations  | <= 2    | 8.5    | SHARES 4    | broken: majority_class
APART, DRIFTS, SHARES = 0.9, 0.25, 4.0
COLUMNS = 64  # with more values in an example, it is an image
BINS = 10
# With fewer rows in a split, the greatest of many KS statistics is large at random.
FEWEST = 32
SHOWN = 8


def measure(subject: Subject) -> Finding:
    """Compare each feature of the loaded splits, then the shares of the classes."""
    trial = subject.trial()
    inputs, others = trial.inputs, trial.validation[0]
    if inputs.shape[1:] != others.shape[1:] or min(len(inputs), len(others)) < FEWEST:
        return Finding("too-few", f"{len(inputs)} and {len(others)} examples: too few to compare distributions", {})
    names, features = _features(inputs, int(max(inputs.max(), others.max())) if _is_text(inputs) else 0)
    other_features = _features(others, len(names) - 1)[1]
    if not bool(features.isfinite().all() and other_features.isfinite().all()):
        return Finding("not-finite", "some features are NaN or infinite", {})
    distances = [kolmogorov_smirnov(one, other) for one, other in zip(features.T, other_features.T, strict=True)]
    indices = [stability_index(one, other) for one, other in zip(features.T, other_features.T, strict=True)]
    share, label = _greatest_share_difference(trial.labels, trial.validation[1])
    order = sorted(range(len(names)), key=lambda at: -distances[at])
    worst = order[0]
    outcome, summary = "stable", f"no feature drifts: largest KS {short(distances[worst])} ({names[worst]})"
    if distances[worst] > APART:
        outcome = "apart"
        summary = f"{names[worst]} has nearly no common values in the two splits: KS {short(distances[worst])}"
    elif share > SHARES:
        outcome = "other-shares"
        summary = f"the share of class {label} differs by {short(share)} standard deviations between the splits"
    elif max(indices) > DRIFTS:
        outcome, summary = "drifts", f"largest KS {short(distances[worst])} ({names[worst]})"
        at = indices.index(max(indices))
        summary += f"; largest PSI {short(indices[at])} ({names[at]})"
    rows = tuple(
        (names[at], distances[at], indices[at], float(features[:, at].mean()), float(other_features[:, at].mean()))
        for at in order[:SHOWN]
    )
    return Finding(
        outcome,
        summary,
        {
            "largest KS of a feature": distances[worst],
            "largest PSI of a feature": max(indices),
            "largest difference of a class share, in deviations": share,
        },
        tables=(
            Table("Features, greatest KS first", ("feature", "KS", "PSI", "training mean", "validation mean"), rows),
        ),
    )


def kolmogorov_smirnov(one: Tensor, other: Tensor) -> float:
    """Return the largest distance between the cumulative distributions of two samples, from 0 to 1."""
    places = torch.cat([one, other])
    below = [torch.searchsorted(sample.sort().values, places, right=True) / len(sample) for sample in (one, other)]
    return float((below[0] - below[1]).abs().max())


def stability_index(one: Tensor, other: Tensor) -> float:
    """Return the population stability index of two samples; the bins have equal shares of the first one."""
    edges = one.quantile(torch.linspace(0, 1, BINS + 1, dtype=one.dtype)[1:-1]).unique()
    counts = [torch.bucketize(sample.contiguous(), edges).bincount(minlength=len(edges) + 1) for sample in (one, other)]
    # Half a row more in each bin, because an empty bin would make the index infinite.
    shares, other_shares = ((count + 0.5) / (count + 0.5).sum() for count in counts)
    return float(((shares - other_shares) * (shares / other_shares).log()).sum())


def _is_text(inputs: Tensor) -> bool:
    return not inputs.is_floating_point()


def _features(inputs: Tensor, symbols: int) -> tuple[list[str], Tensor]:
    """Return the names and the values (N, F) of the features of inputs (N, ...)."""
    rows = inputs.reshape(len(inputs), -1).double()
    if _is_text(inputs):
        shares = torch.stack([(rows == symbol).double().mean(dim=1) for symbol in range(symbols + 1)], dim=1)
        return [f"symbol {symbol}" for symbol in range(symbols + 1)], shares
    if rows.shape[1] <= COLUMNS:
        return [f"column {at}" for at in range(rows.shape[1])], rows
    names = ["mean", "deviation", "least", "greatest"]
    return names, torch.stack([rows.mean(1), rows.std(1, correction=0), rows.amin(1), rows.amax(1)], dim=1)


def _are_classes(labels: Tensor) -> bool:
    """Return whether labels are classes: whole numbers, or yes and no as 1.0 and 0.0."""
    return not labels.is_floating_point() or bool(((labels == 0) | (labels == 1)).all())


def _greatest_share_difference(labels: Tensor, others: Tensor) -> tuple[float, int | None]:
    """Return the largest difference of a class share in standard deviations, and the class; 0 without classes.

    For a label of each symbol, neighbours depend on each other, so the number of texts counts.
    """
    if not all(_are_classes(part) for part in (labels, others)):
        return 0.0, None
    given, other = labels[labels != IGNORED].long(), others[others != IGNORED].long()
    size = int(max(given.max(), other.max())) + 1
    one, two = (part.flatten().bincount(minlength=size).double() / part.numel() for part in (given, other))
    count, other_count = len(labels), len(others)
    together = (one * count + two * other_count) / (count + other_count)
    error = (together * (1 - together) * (1 / count + 1 / other_count)).sqrt().clamp(min=1e-9)
    differences = (one - two).abs() / error
    return float(differences.max()), int(differences.argmax())
