"""Compare each example with its nearest neighbours in both splits: do similar inputs have the same label?

The check measures how often an example and its nearest neighbour have the same label. It measures this agreement within
the training split (as `prepare_batch` returns it), within the validation split, and between each validation example and
its nearest training example. An agreement of 0 means as often as for random labels, and 1 means always. For numeric
targets, the agreement is the share of the variance of their ranks that neighbours explain. If each example has several
numbers, such as the coordinates of a point, the check reports the number with the worst agreement.

The check uses at most 600 examples of each split. It first standardizes each split by its own mean and deviation, so
that a different scale alone has no effect. If the data are split by group or by time, the splits may contain different
kinds of inputs. This is not a fault, and the outcome is `strangers`.

In most tables and texts, neighbours have different labels even within the validation split. Then the check can find
only two faults:

- `unrelated`: neither the neighbours nor a linear fit predict the classes, and what the network learns does not help in
validation.

- `divided`: for most validation examples, a few training examples have the same label and are far closer than all
others, as slices of one patient are. So a random split has divided groups that belong together.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from harness.checks.core.finding import Cell, Finding, percent, short
from harness.checks.core.subject import Subject, Trial
from harness.run.evaluation import is_classification

# figure                                | healthy  | broken  | bound       | source
# agreement of neighbours, digits       | >= 0.96  |         | TELLS 0.4   | below: coloured shapes 0.24, tables 0.17
# agreement in training / in validation | 0.55     | 0.23    | LESS 0.45   | a quarter, or half, of the labels is random
# the same ratio, for keypoints         | 1        | <= 0.05 | LESS 0.45   | flipped with the image; not flipped
# agreement after renaming              |          | 0.99    | RENAMED 0.6 | labels shifted by one
# largest agreement                     | >= 0.28  | <= 0.05 | SOME 0.1    | labels permuted before the split
# accuracy above random, in deviations  |          | <= 1.8  | CHANCE 4    | of the linear fit and of the network
# validation examples with relatives    | <= 0.016 | 1       | KIN 0.5     | slices of patients divided at random
#
# Measured over ten seeds. If the agreement is below TELLS, neighbours do not predict the label. An experiment about
# wrong labels may replace a quarter of its labels by random ones. Permuted labels have an agreement of 0. In a healthy
# data set of points in two dimensions, 0.22 of the validation examples happen to have relatives.
EXAMPLES, MOST = 600, 4000
TELLS = 0.4
LESS = 0.45
RENAMED = 0.6
TARGETS = 16
SOME, CHANCE = 0.1, 4.0
FEWEST, STEPS, RIDGE = 200, 300, 0.1
KIN, RELATIVES, FLAT, GAP, GROUPS = 0.5, 16, 0.75, 0.75, 4


def measure(subject: Subject) -> Finding:
    """Compare the label of each example with the label of its nearest neighbour, in each split and across splits."""
    trial = subject.trial(disable_augment=True)
    inputs, labels = trial.inputs[:EXAMPLES], trial.labels[:EXAMPLES]
    others, their_labels = (part[:EXAMPLES] for part in trial.validation)
    numbers = labels.is_floating_point()
    one_each = labels[0].numel() <= TARGETS if numbers else labels.dim() == 1
    if not one_each or labels.shape[1:] != their_labels.shape[1:] or not inputs.is_floating_point() or len(others) < 2:
        return Finding("no-classes", "the inputs are not numeric, or do not have one label each", {})
    prepared, told = _prepare(trial, inputs, labels)
    x, y = _standardize(inputs), _standardize(others)
    near, validation_near = (_neighbours(rows, rows, itself=True) for rows in (prepared, y))
    nearest = _neighbours(y, x)
    agreements = [
        (_agreement(near, own, own), _agreement(validation_near, theirs, theirs), _agreement(nearest, theirs, loaded))
        for own, theirs, loaded in zip(*map(_columns, (told, their_labels, labels)), strict=True)
    ]
    # Among the targets that neighbours predict in validation, take the target whose agreement falls most in training.
    within, validation, across = min(agreements, key=lambda found: (found[1] < TELLS, found[0] - found[1]))
    renamed = 0.0 if numbers else _agreement_after_renaming(nearest, their_labels, labels)
    told_nothing = not numbers and max(within, validation, across) < SOME
    if validation < TELLS:
        outcome = "unrelated" if told_nothing and _are_unrelated(subject) else "too-hard"
    elif within < LESS * validation:
        outcome = "scrambled"
    elif across < LESS * validation:
        outcome = "renamed" if renamed > RENAMED else "strangers"
    else:
        outcome = "agree"
    kin = 0.0 if numbers else _kin(trial)
    if outcome in ("agree", "too-hard") and kin > KIN:
        outcome = "divided"
    figures: dict[str, Cell] = {
        "within training": within,
        "within validation": validation,
        "of validation with training": across,
        "the same after renaming": renamed,
        "validation examples with relatives in training": kin,
    }
    words = f"neighbours agree {short(within)} in training, {short(validation)} in validation, {short(across)} across"
    if outcome == "renamed":
        words += f", {short(renamed)} after renaming"
    elif outcome == "divided":
        words += f"; {percent(kin)} of the validation examples have relatives in training"
    return Finding(outcome, words, figures)


def _agreement_after_renaming(nearest: Tensor, labels: Tensor, among: Tensor) -> float:
    """Return how often neighbours across the splits agree after renaming classes; 0 if renaming is not needed."""
    names = torch.stack([among[nearest][labels == label].mode().values for label in labels])
    # Different classes must get different new names. If all neighbours belong to one class, they prove nothing.
    apart = 2 * len(names.unique()) > len(labels.unique())
    other = float((names != labels).double().mean()) > RENAMED
    return float((among[nearest] == names).double().mean()) if apart and other else 0.0


def _are_unrelated(subject: Subject) -> bool:
    """Return whether a linear fit and the experiment's own training both predict validation no better than chance."""
    trial = subject.trial()
    labels, theirs = trial.labels[:MOST], trial.validation[1]
    x, y = _standardize(trial.inputs[:MOST]), _standardize(trial.validation[0])
    classes = int(max(labels.max(), theirs.max())) + 1
    if min(len(labels), len(theirs)) < FEWEST or int(min(labels.min(), theirs.min())) < 0:
        return False
    targets = F.one_hot(labels, classes).double()
    products = x @ x.T
    ridge = RIDGE * products.diagonal().mean() * torch.eye(len(x), dtype=x.dtype)
    linear = y @ x.T @ torch.linalg.solve(products + ridge, targets - targets.mean(dim=0))
    for batch in trial.batches(min(STEPS, trial.steps)):
        trial.step(*batch)
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(trial.validation[0])
    except RuntimeError:  # the network accepts only inputs that evaluate has changed
        return False
    return is_classification(outputs, theirs) and all(
        _surplus(scores.argmax(dim=1), theirs) < CHANCE for scores in (linear, outputs)
    )


def _surplus(answers: Tensor, labels: Tensor) -> float:
    """Return how many standard deviations the accuracy of answers is above the accuracy of shuffled answers."""
    classes = int(max(answers.max(), labels.max())) + 1
    shares = [torch.bincount(side, minlength=classes).double() / len(side) for side in (answers, labels)]
    chance = float(shares[0] @ shares[1])
    right = float((answers == labels).double().mean())
    return (right - chance) / max(math.sqrt(chance * (1 - chance) / len(labels)), 1e-9)


def _kin(trial: Trial) -> float:
    """Return the share of validation examples with relatives: a few training examples far closer than all others.

    Relatives have the same label as the validation example and are a small part of its class, because a whole class of
    a few examples is not a group.
    """
    labels, theirs = trial.labels[:MOST], trial.validation[1][:EXAMPLES]
    x, y = (part.nan_to_num().flatten(1).double() for part in (trial.inputs[:MOST], trial.validation[0][:EXAMPLES]))
    if len(x) <= RELATIVES + 1 or x.shape[1] != y.shape[1]:
        return 0.0
    distances, places = torch.cdist(y, x).topk(RELATIVES + 1, dim=1, largest=False)
    first, last, next_one = distances[:, :1], distances[:, 1:-1], distances[:, 2:]
    group = (first >= FLAT * last) & (last <= GAP * next_one) & (first > 0)
    alike = (labels[places] == theirs.unsqueeze(1)).long().cumprod(dim=1)[:, 1:-1].bool()
    size = torch.arange(2, RELATIVES + 1)
    few = GROUPS * size <= (labels == theirs.unsqueeze(1)).sum(dim=1, keepdim=True)
    return float((group & alike & few).any(dim=1).double().mean())


def _prepare(trial: Trial, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    batches = zip(inputs.split(trial.batch_size), labels.split(trial.batch_size), strict=True)
    images, told = (torch.cat(parts) for parts in zip(*(trial.prepare(*batch) for batch in batches), strict=True))
    if told.dtype != labels.dtype or told.shape != labels.shape:  # mixed or soft labels: use the original labels
        return _standardize(inputs), labels
    return _standardize(images), told


def _columns(labels: Tensor) -> tuple[Tensor, ...]:
    """Return labels (N,) unchanged, or one tensor (N,) for each number if an example has several numbers."""
    return labels.flatten(1).unbind(dim=1) if labels.dim() > 1 else (labels,)


def _standardize(inputs: Tensor) -> Tensor:
    flat = inputs.nan_to_num().flatten(1).double()
    return (flat - flat.mean()) / flat.std().clamp(min=1e-12)


def _neighbours(rows: Tensor, among: Tensor, *, itself: bool = False) -> Tensor:
    """Return the index of each row's nearest neighbour; with `itself`, a row is not its own neighbour."""
    distances = torch.cdist(rows, among)
    if itself:
        distances.fill_diagonal_(torch.inf)
    return distances.argmin(dim=1)


def _agreement(nearest: Tensor, labels: Tensor, among: Tensor) -> float:
    """Return how well the labels of neighbours agree: 0 as for random labels, 1 for equal labels or equal numbers."""
    if labels.is_floating_point():
        labels, among = _ranks(labels), _ranks(among)
        apart = float((labels - among[nearest]).square().mean())
        by_chance = float((labels.unsqueeze(1) - among).square().mean())
        return 1.0 - apart / by_chance if by_chance else 0.0
    classes = int(max(labels.max(), among.max())) + 1
    shares = [torch.bincount(side, minlength=classes).double() / len(side) for side in (labels, among)]
    chance = float(shares[0] @ shares[1])
    agree = float((labels == among[nearest]).double().mean())
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0


def _ranks(values: Tensor) -> Tensor:
    """Return the rank of each number, scaled to 0 to 1, so that a few huge numbers do not hide the others."""
    values = values.contiguous()
    order = values.sort().values
    return (torch.searchsorted(order, values) + torch.searchsorted(order, values, right=True)) / (2 * len(values))
