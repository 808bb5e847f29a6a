"""Asks the nearest neighbours: do examples that look alike have the same label, within a split and across both?

Three shares of neighbours with the same label: within the training split, as a batch is prepared; within validation;
and of the training neighbours of validation examples. 0 is what labels drawn by chance would give, 1 means that all
agree. Each split is standardized by its own mean and deviation first, so that scale alone does not matter; at most 600
examples of each are compared. Where neighbours tell nothing even within validation, as in most tables and texts, the
check cannot say anything.

Sources of the bounds: digits agree to 0.96 and more within and across, the figures in colour to 0.24 and tables to 0.17
(0.4). Half of the labels drawn anew leave 0.23 of what validation has, a quarter of them, as an experiment about wrong
labels may have, 0.55; permuted ones nothing (0.45). Shifted labels agree to 0.99 once they are renamed (0.6). Splits by
group or by time may lie apart, which is no fault.
"""

import torch
from torch import Tensor

from harness.checks.core.finding import Cell, Check, Finding, mechanism, short, sound
from harness.checks.core.subject import Subject, Trial

CHECK = Check(
    order=24,
    question="Do inputs that look alike have the same label?",
    minutes=2,
    outcomes=(
        sound(
            "agree", "Neighbours have the same labels, within and across the splits: labels belong to inputs.", "data"
        ),
        sound("too-hard", "Even validation examples have neighbours of other labels: this check cannot tell.", "data"),
        sound("no-classes", "The labels are no classes of single examples: this check does not apply.", "data"),
        sound(
            "strangers",
            "Neighbours agree within each split, not across: the splits hold other kinds of inputs.",
            "preparation",
        ),
        mechanism(
            "scrambled",
            "Neighbours agree in validation, but not in training: training labels belong to other inputs, or to none.",
            look="load_data and prepare_batch: what happens to the training labels, and to the order of the inputs",
        ),
        mechanism(
            "renamed",
            "Each class of validation has training neighbours of one other class: a label means two things.",
            look="load_data: what it does with the labels of each split",
        ),
    ),
)
EXAMPLES = 600
TELLS = 0.4
LESS = 0.45
RENAMED = 0.6


def measure(subject: Subject) -> Finding:
    """Compare each example with its nearest neighbour in the same split, and across."""
    trial = subject.trial(disable_augment=True)
    inputs, labels = trial.inputs[:EXAMPLES], trial.labels[:EXAMPLES]
    others, their_labels = (part[:EXAMPLES] for part in trial.validation)
    if labels.is_floating_point() or labels.dim() > 1 or not inputs.is_floating_point() or len(others) < 2:
        return Finding("no-classes", "no labels of single inputs with numbers", {})
    prepared, told = _prepared(trial, inputs, labels)
    x, y = _standardized(inputs), _standardized(others)
    within = _agreement(_neighbours(prepared, prepared, itself=True), told, told)
    validation = _agreement(_neighbours(y, y, itself=True), their_labels, their_labels)
    nearest = _neighbours(y, x)
    across = _agreement(nearest, their_labels, labels)
    names = torch.stack([labels[nearest][their_labels == label].mode().values for label in their_labels])
    # Renamed classes stay apart; neighbours of one class for all of them say nothing.
    apart = 2 * len(names.unique()) > len(their_labels.unique())
    other = float((names != their_labels).double().mean()) > RENAMED
    renamed = float((labels[nearest] == names).double().mean()) if apart and other else 0.0
    if validation < TELLS:
        outcome = "too-hard"
    elif within < LESS * validation:
        outcome = "scrambled"
    elif across < LESS * validation:
        outcome = "renamed" if renamed > RENAMED else "strangers"
    else:
        outcome = "agree"
    figures: dict[str, Cell] = {
        "within training": within,
        "within validation": validation,
        "of validation with training": across,
        "the same after renaming": renamed,
    }
    words = f"neighbours agree {short(within)} in training, {short(validation)} in validation, {short(across)} across"
    return Finding(outcome, words, figures)


def _prepared(trial: Trial, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    batches = zip(inputs.split(trial.batch_size), labels.split(trial.batch_size), strict=True)
    images, told = (torch.cat(parts) for parts in zip(*(trial.prepare(*batch) for batch in batches), strict=True))
    if told.is_floating_point() or told.shape != labels.shape:  # mixed or soft labels: judge them as loaded
        return _standardized(inputs), labels
    return _standardized(images), told


def _standardized(inputs: Tensor) -> Tensor:
    flat = inputs.nan_to_num().flatten(1).double()
    return (flat - flat.mean()) / flat.std().clamp(min=1e-12)


def _neighbours(rows: Tensor, among: Tensor, *, itself: bool = False) -> Tensor:
    """Return the place of each row's nearest neighbour; `itself` leaves out the row itself, and rows equal to it."""
    distances = torch.cdist(rows, among)
    if itself:
        distances.fill_diagonal_(torch.inf)
    return distances.argmin(dim=1)


def _agreement(nearest: Tensor, labels: Tensor, among: Tensor) -> float:
    """Return how often neighbours have the same label: 0 as by chance, 1 always."""
    classes = int(max(labels.max(), among.max())) + 1
    shares = [torch.bincount(side, minlength=classes).double() / len(side) for side in (labels, among)]
    chance = float(shares[0] @ shares[1])
    agree = float((labels == among[nearest]).double().mean())
    return (agree - chance) / (1 - chance) if chance < 1 else 0.0
