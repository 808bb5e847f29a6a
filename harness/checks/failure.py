"""When a run fails: the first step that computes what is no number, trips a guardrail, or evaluates in two ways."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.checks.differences import numbers_of
from harness.checks.overfit import BLOW_UP
from harness.checks.repro_files import Failure
from harness.checks.subject import Subject
from harness.checks.walk import State, Walk, not_finite
from harness.errors import UserError
from harness.run.guardrails import Guardrails
from harness.run.metrics_log import Record


@dataclass(frozen=True)
class Moment:
    """A step of a run: the state before it, its record, and that of the epoch that it ended, if it did."""

    before: State
    record: Record
    epoch: Record | None
    problem: str

    @property
    def records(self) -> list[Record]:
        """What the step added to the log."""
        return [self.record] if self.epoch is None else [self.record, self.epoch]


def find_failure(
    subject: Subject, folder: Path, *, step: int | None = None
) -> tuple[list[Record], Moment, Failure]:
    """Make the run up to its failure, to the step asked for or to its end.

    Returns the records before that step, the step itself, and what failed. Raises `UserError` for a step that the run
    does not have.
    """
    guardrails, before = Guardrails("warn"), list[Record]()
    moment, first = None, math.inf
    for moment in _moments(subject, folder):
        first = first if before else abs(moment.record["loss"])
        failure = _failure(moment, guardrails, first) if step is None else None
        if failure is not None or moment.record["step"] == step:
            return before, moment, failure or _asked(moment)
        before += moment.records
    assert moment is not None  # a run has at least one step
    if step is not None:
        raise UserError(
            f"The run has {moment.record['step'] + 1} steps, counted from 0: there is no step {step}."
        )
    return before[: -len(moment.records)], moment, _asked(moment)


def _moments(subject: Subject, folder: Path) -> Iterator[Moment]:
    with Walk(subject, folder) as walk:
        while not walk.over:
            before = walk.state()
            record = walk.step()
            problem = not_finite(walk, record)
            yield Moment(before, record, walk.end_epoch(), problem)


def _failure(moment: Moment, guardrails: Guardrails, first_loss: float) -> Failure | None:
    record, epoch = moment.record, moment.epoch
    step, loss = record["step"], record["loss"]
    # Guardrails wait until most of five batches say so; a reproducer begins before the first of them.
    if abs(loss) > BLOW_UP * first_loss:
        return Failure(step, "loss", loss, f"the loss is {loss:.4g}, where the first was {first_loss:.4g}")
    for finding in guardrails.check(record):
        return Failure(step, finding.quantity, value_of(moment.records, finding.quantity), finding.message)
    if moment.problem:
        return Failure(step, "loss", loss, moment.problem)
    if epoch is None:
        return None
    if epoch["eval_buffer_change"]:
        change = epoch["eval_buffer_change"]
        return Failure(step, "eval_buffer_change", change, "evaluating changed the network's statistics")
    if "val_loss_repeated" in epoch and epoch["val_loss_repeated"] != epoch["val_loss"]:
        what = "the same weights, evaluated again, have another loss"
        return Failure(step, "val_loss_repeated", epoch["val_loss_repeated"], what)
    return None


def _asked(moment: Moment) -> Failure:
    quantity = "loss" if moment.epoch is None else "val_loss"
    value = value_of(moment.records, quantity)
    return Failure(moment.record["step"], quantity, value, "nothing stands out at this step", sudden=False)


def value_of(records: list[Record], quantity: str) -> float | None:
    """Return a quantity, by its name in the log, of the first of these records that has it."""
    for record in records:
        found = dict(numbers_of(record))
        if quantity in found:
            return found[quantity]
    return None
