"""Evaluates one network three ways, twice each: with `evaluate` as written, in training mode, and in eval mode.

Before each way the network is in training mode, as training leaves it. An evaluation must repeat to the bit,
change no buffer of the network (batch norm's statistics), and report what eval mode gives. The check measures
the network after the first six steps of the run. It also evaluates a classifier of our own with batch norm and
dropout twice: an `evaluate` that sets no mode is wrong even if this network has neither layer.

Sources of the bounds: two evaluations of one network are equal (buffers to 1e-9). An accuracy on the
validation split computed in another order of additions is within 0.005.
"""

import copy
from collections.abc import Callable
from contextlib import suppress

from torch import nn

from harness.checks.core.finding import Check, Finding, Table, mechanism, short, sound
from harness.checks.core.subject import Subject, Trial
from harness.errors import UserError
from harness.run.evaluation import loss_and_accuracy

CHECK = Check(
    order=100,
    question="Does evaluating repeat, and report what eval mode gives?",
    minutes=3,
    outcomes=(
        sound("agree", "Evaluation repeats and reports what eval mode gives: it is ruled out.", "repeat"),
        mechanism(
            "unrepeatable",
            "Evaluating twice gives two answers, or changes the network: do not trust the validation figures.",
            look="evaluate: in what state the network is while it runs",
        ),
        mechanism(
            "other-mode",
            "The reported figures repeat, but they are not what the network gives in eval mode.",
            look="evaluate: what it computes, and on what",
        ),
    ),
)
REPEATS = 1e-9
SAME = 5e-3
STEPS = 6

_Figures = tuple[float, float | None]  # loss, and accuracy (None for a regression)


def measure(subject: Subject) -> Finding:
    """Evaluate the network after the first steps in every way."""
    trial = subject.trial()
    for batch in trial.batches(STEPS):
        trial.step(*batch)

    def written(model: nn.Module) -> _Figures:
        found = trial.experiment.evaluate(model, *trial.validation)
        return float(found["val_loss"] or 0.0), found["val_accuracy"]

    ways = {
        "evaluate, as written": written,
        "training mode": lambda model: loss_and_accuracy(trial.experiment, model.train(), *trial.validation),
        "eval mode": lambda model: loss_and_accuracy(trial.experiment, model.eval(), *trial.validation),
    }
    found = {name: _twice(copy.deepcopy(trial.model).train(), way) for name, way in ways.items()}
    stand_in = None
    if not trial.labels.is_floating_point():
        # An evaluation made for the experiment's own network cannot take ours.
        with suppress(UserError):
            first, second, moved = _twice(_network_with_modes(trial), written)
            stand_in = max(abs(second[0] - first[0]), moved)
    first, second, moved = found["evaluate, as written"]
    trusted = found["eval mode"][0]
    if first != second or not moved <= REPEATS or not (stand_in or 0.0) <= REPEATS:
        outcome = "unrepeatable"
    else:
        outcome = "agree" if _distance(first, trusted) <= SAME else "other-mode"
    columns = "evaluated", "loss", "loss again", "accuracy", "accuracy again", "buffers moved"
    rows = tuple((name, once[0], again[0], once[1], again[1], change) for name, (once, again, change) in found.items())
    return Finding(
        outcome,
        f"loss as written {short(first[0])}, again {short(second[0])}, eval mode {short(trusted[0])}",
        {
            "loss as written": first[0],
            "loss in eval mode": trusted[0],
            "accuracy as written": first[1],
            "accuracy in eval mode": trusted[1],
            "buffers moved by evaluate": moved,
            "distance on a network with batch norm and dropout": stand_in,
        },
        tables=(Table("The same weights", columns, rows),),
    )


def _network_with_modes(trial: Trial) -> nn.Module:
    """Return a classifier of images with batch norm and dropout, in training mode."""
    inputs, labels = trial.validation
    pixels, classes = 16 * inputs.shape[1], int(labels.max()) + 1
    layers = nn.BatchNorm1d(pixels), nn.Dropout(0.5), nn.Linear(pixels, classes)
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), *layers).train()


def _twice(model: nn.Module, evaluate: Callable[[nn.Module], _Figures]) -> tuple[_Figures, _Figures, float]:
    """Evaluate twice; return both figures and the largest change of any buffer."""
    before = [buffer.clone() for buffer in model.buffers()]
    first, second = evaluate(model), evaluate(model)
    moved = [
        float((new.double() - old.double()).abs().max())
        for old, new in zip(before, model.buffers(), strict=True)
        if old.numel()
    ]
    return first, second, max(moved, default=0.0)


def _distance(first: _Figures, second: _Figures) -> float:
    """Return the distance of the accuracies or, for a regression, the relative distance of the losses."""
    if first[1] is not None and second[1] is not None:
        return abs(first[1] - second[1])
    return abs(first[0] - second[0]) / max(abs(second[0]), 1e-12)
