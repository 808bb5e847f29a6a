"""Proposes symptoms from measured runs: which figure of the log separates broken from healthy, and at which bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

from harness.recipe import Reducer, Signal, Symptom
from harness.run.metrics_log import Record
from harness.symptoms import judge_symptom

_WINDOWS = (None, (0, 20), (1, 5))
# The least distance of the two ranges, relative to their sum, that a threshold may rest on: a factor of 1.22.
_LEAST_MARGIN = 0.1
_MOST = 2
# A figure this many times smaller than the other side's counts as zero when a bound is placed between them.
_FLOOR = 1e-4


@dataclass(frozen=True)
class Proposal:
    """A symptom that all broken runs show and no healthy run does; `margin` is 1 for ranges without any ratio."""

    symptom: Symptom
    margin: float
    broken: tuple[float, float]
    healthy: tuple[float, float]


def propose(broken: Sequence[Sequence[Record]], healthy: Sequence[Sequence[Record]]) -> list[Proposal]:
    """Return the symptoms with the largest margins, of at most two different signals; [] if nothing separates.

    `broken` and `healthy` are the records of runs over the same seeds.
    """
    best: dict[str, Proposal] = {}
    for signal, reducer, steps in product(get_args(Signal), get_args(Reducer), _WINDOWS):
        if steps is not None and reducer in ("first", "last"):
            continue
        measure = Symptom(signal=signal, reduce=reducer, steps=steps, above=0.0, says="x")
        ours, theirs = _span(broken, measure), _span(healthy, measure)
        found = _between(measure, ours, theirs) if ours and theirs else None
        if found and found.margin >= _LEAST_MARGIN:
            best[signal] = max(best.get(signal, found), found, key=lambda item: item.margin)
    return sorted(best.values(), key=lambda item: -item.margin)[:_MOST]


def _span(runs: Sequence[Sequence[Record]], measure: Symptom) -> tuple[float, float] | None:
    values = [judge_symptom(records, measure).value for records in runs]
    known = [value for value in values if value is not None and not math.isnan(value)]
    return (min(known), max(known)) if known and len(known) == len(values) else None


def _between(measure: Symptom, broken: tuple[float, float], healthy: tuple[float, float]) -> Proposal | None:
    above = broken[0] > healthy[1]
    low, high = (healthy[1], broken[0]) if above else (broken[1], healthy[0])
    if not low < high:
        return None
    bound = middle(low, high)
    margin = 1.0 if math.inf in (abs(low), abs(high)) else (high - low) / (abs(high) + abs(low))
    window = "" if measure.steps is None else f" of steps {measure.steps[0]} to {measure.steps[1] - 1}"
    says = f"the {measure.reduce} {measure.signal}{window} is {'above' if above else 'below'} {bound:g}"
    bounds = {"above": bound, "below": None} if above else {"above": None, "below": bound}
    return Proposal(measure.model_copy(update={**bounds, "says": says}), margin, broken, healthy)


def middle(low: float, high: float) -> float:
    """Return a short number between two: the geometric middle if the scale is positive, else the arithmetic one."""
    if high == math.inf:
        high = 100 * abs(low) or 1.0
    if low == -math.inf:
        low = min(0.0, 10 * high)
    exact = (low + high) / 2 if low < 0 or high <= 0 else math.sqrt(max(low, high * _FLOOR) * high)
    for digits in range(1, 17):
        rounded = float(f"{exact:.{digits}g}")
        if low < rounded < high:
            return rounded
    return exact
