"""Trains for at most 100 steps and looks at each class: how many of its validation examples are found?

A mean accuracy hides a class that is never predicted: one of ten costs 10 %, a rare one next to nothing. A class counts
as left out if the network finds hardly any of its examples while it finds most of those of the other classes. A network
that finds little of any class has learnt too little for this check.

Sources of the bounds, over the healthy experiments: those whose median class is found to 0.85 find 0.4 and more of each
class, and to 0.77, in the shortest runs, nothing of one (0.85). A loss that ignores a class finds nothing of it, and
0.92 of the others (0.05).
"""

import copy
from statistics import median

import torch

from harness.checks.core.finding import Check, Finding, Table, consequence, short, sound
from harness.checks.core.subject import Subject
from harness.run.evaluation import is_classification

CHECK = Check(
    order=105,
    question="Is every class found after some training?",
    minutes=3,
    outcomes=(
        sound("all-found", "No class is left out by a network that finds the others.", "modes"),
        sound("too-early", "The network does not find most classes yet: this check cannot tell.", "overfit"),
        sound(
            "no-classes", "The outputs are no scores of classes of single examples: this check does not apply.", "modes"
        ),
        consequence(
            "left-out",
            "The network finds the other classes, and hardly anything of one: an accuracy hides this.",
            "loss_form",
            "data",
            look="compute_loss: which labels count, and how much; load_data: how many examples each class has",
        ),
    ),
)
STEPS = 100
FEWEST = 5
FOUND, LOST = 0.85, 0.05


def measure(subject: Subject) -> Finding:
    """Train, then compare predictions with labels, class by class."""
    trial = subject.trial()
    inputs, labels = trial.validation
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(trial.model).eval()(inputs)
    except RuntimeError:  # evaluate gives the network other inputs than load_data returns
        return Finding("no-classes", "the network does not take the validation inputs as they are loaded", {})
    if not is_classification(outputs, labels):
        return Finding("no-classes", f"outputs {tuple(outputs.shape)}, labels {tuple(labels.shape)}", {})
    for batch in trial.batches(min(STEPS, trial.steps)):
        trial.step(*batch)
    with torch.no_grad():
        predicted = trial.model.eval()(inputs).argmax(dim=-1)
    rows = []
    for label in range(outputs.shape[-1]):
        own, training = int((labels == label).sum()), int((trial.labels == label).sum())
        recall = float((predicted[labels == label] == label).double().mean()) if own else None
        rows.append((str(label), training, own, int((predicted == label).sum()), recall))
    recalls = [row[4] for row in rows if row[4] is not None and row[2] >= FEWEST]
    least, usual = min(recalls, default=0.0), median(sorted(recalls)[1:] or [0.0])
    outcome = "left-out" if least < LOST and usual > FOUND else "all-found" if usual > FOUND else "too-early"
    return Finding(
        outcome,
        f"least share of a class that is found {short(least)}, median of the others {short(usual)}",
        {"found of the worst class": least, "median of the other classes": usual},
        tables=(Table("Validation, by class", ("class", "training", "validation", "predicted", "found"), tuple(rows)),),
    )
