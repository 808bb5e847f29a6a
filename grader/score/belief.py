"""Decide how far to believe the log of a fixed run, which the student's own process wrote.

Equal bytes, our own runs and the evaluator's figures are trusted. If an edit is not plain, its own measurements prove
nothing: the instructor decides.
"""

import math

from grader.intake.program import program_digest
from grader.replay.replay import Replay
from grader.score.evidence import Evidence
from harness.run.metrics_log import batch_records, epoch_records

# The log's last validation and the evaluator's, on the same images, differ by rounding.
ACCURACY_APART = 0.005
# A loss in the log below this share of the evaluator's is not believed. No known fix of any recipe comes near, though
# losses are compared across loss functions, dropout and the last steps of training.
_LOSS_SHARE, _LOSS_APART = 0.5, 0.05
_LAST_STEPS = 20


def same_bytes(first: Replay, second: Replay) -> bool:
    """Return whether two replays have the same log and the same checkpoint."""
    return (first.log_sha256, first.checkpoint_sha256) == (second.log_sha256, second.checkpoint_sha256)


def same_as_reference(evidence: Evidence) -> bool:
    """Return whether the fix gave the same bytes as the reference fix."""
    return same_bytes(evidence.fixed, evidence.reference)


def nothing_was_edited(evidence: Evidence) -> bool:
    """Return whether the experiment is the broken program, or gave its bytes and those of the reference fix differ."""
    broken = evidence.recipe.broken_source()
    if program_digest(evidence.source) == program_digest(broken):
        return True
    judged = evidence.judged
    return same_bytes(judged.fixed, judged.broken) and not same_bytes(judged.broken, judged.reference)


def doubt(evidence: Evidence) -> str:
    """Return why the code's own measurements prove nothing, as a clause with the line, or "".

    A run with the bytes of the reference fix has the fix, however the code looks.
    """
    if not evidence.suspicions or same_as_reference(evidence):
        return ""
    return evidence.suspicions[0].message


def figure_doubt(evidence: Evidence) -> str:
    """Return why a number in the fixed run's log is not believed, as a clause, or ""."""
    return doubt(evidence) or overclaim(evidence)


def overclaim(evidence: Evidence) -> str:
    """Return where the fixed run's log is better than the trusted evaluator's figures, as a clause, or ""."""
    fixed = evidence.fixed
    if fixed.status != "OK" or fixed.evaluation is None or same_as_reference(evidence):
        return ""
    validation, training = fixed.evaluation.validation, fixed.evaluation.training
    if validation is None:
        return "the trusted evaluator does not know the network that it trains"
    last = epoch_records(fixed.records())[-1]
    accuracy, found = last.get("val_accuracy"), validation.accuracy
    right = found if isinstance(found, int | float) else 0.0
    if isinstance(accuracy, int | float) and not accuracy <= right + ACCURACY_APART:
        return _clause("the last validation accuracy", accuracy, found)
    losses = [record.get("loss") for record in batch_records(fixed.records())[-_LAST_STEPS:]]
    numbers = [loss for loss in losses if isinstance(loss, int | float)]
    if _is_better(last.get("val_loss"), validation.loss):
        return _clause("the last validation loss", last["val_loss"], validation.loss)
    if numbers and training is not None and _is_better(mean := sum(numbers) / len(numbers), training.loss):
        return _clause("the loss in the last batches", mean, training.loss)
    return ""


def _is_better(claimed: object, found: object) -> bool:
    """Return whether the log's loss is far below the evaluator's; a non-finite loss is the worst."""
    if not isinstance(claimed, int | float):
        return False
    if not isinstance(found, int | float):
        return math.isfinite(claimed)
    return claimed < found * _LOSS_SHARE - _LOSS_APART


def _clause(what: str, claimed: float, found: object) -> str:
    shown = f"{found:.4g}" if isinstance(found, int | float) else f"{found}"
    return f"its log has {what} as {claimed:.4g}, and the trusted evaluator finds {shown} for the weights"
