"""Judge symptoms: reduce a signal of a run's log to one number, and compare this number with the symptom's bounds."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.recipes.recipe import Symptom
from harness.run.metrics_log import Record, batch_records, epoch_records
from harness.run.signals import BATCH_SIGNALS


@dataclass(frozen=True)
class SymptomResult:
    """Whether a run shows a symptom, and the value that was compared with its bounds (None if the log has no value)."""

    symptom: Symptom
    value: float | None
    present: bool


def signal_values(records: Sequence[Record], signal: str) -> list[tuple[int, float]]:
    """Return a list of (step, value) or, for a signal of epochs, of (epoch, value). Absent values are skipped.

    `eval_mode_gain` is the accuracy in eval mode minus the reported accuracy, for the same weights.
    `eval_disagreement` is the relative difference between the losses of two evaluations of the same weights.
    """
    if signal in BATCH_SIGNALS:
        pairs: Iterable[tuple[int, float | None]] = ((r["step"], r.get(signal)) for r in batch_records(records))
    else:
        pairs = ((r.get("epoch", 0), _epoch_value(r, signal)) for r in epoch_records(records))
    return [(index, float(value)) for index, value in pairs if value is not None]


def _epoch_value(record: Record, signal: str) -> float | None:
    if signal == "eval_mode_gain":
        if record.get("val_accuracy_eval_mode") is None or record.get("val_accuracy") is None:
            return None
        return float(record["val_accuracy_eval_mode"] - record["val_accuracy"])
    if signal == "eval_disagreement":
        if record.get("val_loss_repeated") is None or record.get("val_loss") is None:
            return None
        first, second = record["val_loss"], record["val_loss_repeated"]
        return 0.0 if first == second else abs(second - first) / max(abs(first), 1e-12)
    return record.get(signal)


def reduce_values(values: Sequence[float], reducer: str) -> float:
    """Reduce one or more values to one number. A NaN counts as infinity for `max`, and as minus infinity for `min`."""
    if reducer in ("first", "last"):
        return values[0 if reducer == "first" else -1]
    if reducer in ("max", "min"):
        # A NaN is worse than any number, both for an upper and for a lower bound.
        worst, extreme = (math.inf, max) if reducer == "max" else (-math.inf, min)
        return worst if any(map(math.isnan, values)) else extreme(values)
    if not all(map(math.isfinite, values)):
        return math.nan
    return statistics.median(values) if reducer == "median" else statistics.fmean(values)


def judge_symptom(records: Sequence[Record], symptom: Symptom) -> SymptomResult:
    """Return whether the records of a run show a symptom. A NaN is neither above nor below a bound."""
    values = signal_values(records, symptom.signal)
    if symptom.steps is not None:
        start, end = symptom.steps
        values = [(index, value) for index, value in values if start <= index < end]
    if not values:
        return SymptomResult(symptom, None, False)
    value = reduce_values([value for _, value in values], symptom.reduce)
    above = symptom.above is None or value > symptom.above
    below = symptom.below is None or value < symptom.below
    return SymptomResult(symptom, value, above and below)
