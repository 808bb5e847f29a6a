"""How far the log of a fixed run is believed: the experiment's own process wrote it.

Trusted are equal bytes, our own runs, and what the evaluator finds about the weights. What an experiment says of
itself and nothing trusted bears out earns nothing: the instructor decides.
"""

import math

from grader.replay.replay import Replay, SplitFigures
from grader.score.evidence import Evidence
from grader.syntax.surroundings import looks_around
from harness.run.metrics_log import batch_records, epoch_records

# The log's last validation and the evaluator's, on the same images, differ by rounding.
ACCURACY_APART = 0.005
# Losses are compared across loss functions (a sum, a second softmax), dropout and the last steps of training: of
# all variants of all recipes, none has a log that is better than this share of what the evaluator finds.
_LOSS_SHARE, _LOSS_APART = 0.5, 0.05
# What `plain_code` calls what could put something else in the place of what is recorded, or carry weights.
_WRITES = frozenset({"patch", "class", "decorator", "data"})
# The last steps of the log whose losses are averaged.
_LAST_STEPS = 20


def same_bytes(first: Replay, second: Replay) -> bool:
    """Say whether two replays have the same log and the same checkpoint."""
    return (first.log_sha256, first.checkpoint_sha256) == (second.log_sha256, second.checkpoint_sha256)


def same_as_reference(evidence: Evidence) -> bool:
    """Say whether the replay of the fix has the bytes of the reference fix's."""
    return same_bytes(evidence.fixed, evidence.reference)


def code_doubt(evidence: Evidence) -> str:
    """Return why the code makes what its own process measured no proof, as a clause with the line; else "".

    Equal bytes were made by no code that lies; but by code that could know where it ran, perhaps.
    """
    if same_as_reference(evidence):
        around = looks_around(evidence.source)
        return "" if around is None else around.message
    return evidence.suspicions[0].message if evidence.suspicions else ""


def log_doubt(evidence: Evidence) -> str:
    """Return why the code could have written its log, or the weights, without training for them; else "".

    A hook, a seed or a counter is not plain either, but changes a log only by what it does to the training.
    """
    evaluation = evidence.fixed.evaluation
    # The answers of a network of its own are given by its code, not by weights alone.
    own = evaluation is not None and evaluation.own_network
    written = (item for item in evidence.suspicions if own or item.code in _WRITES)
    found = next(written, None) or looks_around(evidence.source)
    return "" if found is None else found.message


def figure_doubt(evidence: Evidence) -> str:
    """Return why a number of the fixed run's log is not believed, as a clause; else "".

    The reference fix's bytes are doubted only where the code could know where it runs; other logs where code could
    have written them, or where they flatter the weights.
    """
    doubt = code_doubt if same_as_reference(evidence) else log_doubt
    return doubt(evidence) or flattery(evidence)


def flattery(evidence: Evidence) -> str:
    """Return what the log of the fixed run says better than the trusted evaluator finds it, as a clause; else ""."""
    fixed = evidence.fixed
    if fixed.status != "OK" or fixed.evaluation is None or same_as_reference(evidence):
        return ""
    if fixed.evaluation.validation is None:
        return "the trusted evaluator does not know the network that it trains"
    return _validation(fixed, fixed.evaluation.validation) or _training(fixed, fixed.evaluation.training)


def _validation(fixed: Replay, found: SplitFigures) -> str:
    told = epoch_records(fixed.records())[-1]
    accuracy = told.get("val_accuracy")
    if isinstance(accuracy, int | float) and not accuracy <= _number(found.accuracy) + ACCURACY_APART:
        return _clause("the last validation accuracy", accuracy, found.accuracy)
    if _is_better(told.get("val_loss"), found.loss):
        return _clause("the last validation loss", told["val_loss"], found.loss)
    return ""


def _training(fixed: Replay, found: SplitFigures | None) -> str:
    losses = [record.get("loss") for record in batch_records(fixed.records())[-_LAST_STEPS:]]
    numbers = [loss for loss in losses if isinstance(loss, int | float)]
    mean = sum(numbers) / max(len(numbers), 1)
    if found is not None and numbers and _is_better(mean, found.loss):
        return _clause("the loss in the last batches", mean, found.loss)
    return ""


def _is_better(told: object, found: object) -> bool:
    """Say whether a loss is told far below the one found; one found that is no number is worse than any."""
    if not isinstance(told, int | float):
        return False
    if not isinstance(found, int | float):
        return math.isfinite(told)
    return told < found * _LOSS_SHARE - _LOSS_APART


def _clause(what: str, told: float, found: object) -> str:
    shown = f"{found:.4g}" if isinstance(found, int | float) else f"{found}"
    return f"its log has {what} as {told:.4g}, and the trusted evaluator finds {shown} for the weights"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
