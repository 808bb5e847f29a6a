"""The values of one log by signal and place, and where the log of a broken run departs from that of a healthy run."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Literal

from harness.errors import UserError
from harness.plain_yaml import shown
from harness.recipe import suggestion
from harness.run.metrics_log import Record, batch_records, epoch_records, log_lines, parse_log
from harness.submission.numbers import agrees, read_number
from harness.symptoms import signal_values

BATCH_SIGNALS = ("loss", "lr", "grad_norm", "grad_zero_fraction", "stale_grad_ratio", "optimizer_steps")
# One value for each parameter or layer; a dotted path names it: grad_mean.1.weight, activations.last.var.
NESTED_SIGNALS = ("grad_mean", "grad_norm_by_parameter", "activations")
EPOCH_SIGNALS = (
    "val_loss",
    "val_accuracy",
    "eval_buffer_change",
    "val_loss_repeated",
    "val_accuracy_repeated",
    "val_loss_eval_mode",
    "val_accuracy_eval_mode",
)
# Computed from the record of an epoch (`harness.symptoms`).
DERIVED_SIGNALS = ("eval_mode_gain", "eval_disagreement")
SIGNALS = (*BATCH_SIGNALS, *NESTED_SIGNALS, *EPOCH_SIGNALS, *DERIVED_SIGNALS)

_DEPTH = 3  # tables within tables; a run writes two

Place = Literal["step", "epoch"]
# Two runs from one seed see the same batches, so they differ by what the break does. The loss of a batch swings within
# a healthy run, and half of the larger value is beyond that; a validation is a mean over hundreds of images.
_STEP_SHARE, _EPOCH_SHARE = 0.5, 0.05
# Accuracies are read as float32: a smaller gain is rounding.
_NOTHING = {"eval_mode_gain": 1e-6}


def place_of(signal: str) -> Place:
    """Return whether the log has a signal once a step or once an epoch. Raises `UserError` for an unknown signal."""
    top = signal.split(".", 1)[0]
    if top in BATCH_SIGNALS or top in NESTED_SIGNALS:
        return "step"
    if top in EPOCH_SIGNALS or top in DERIVED_SIGNALS:
        return "epoch"
    raise UserError(f"the log has no signal {shown(signal)!r}: {suggestion(top, SIGNALS)}")


def is_fraction(signal: str) -> bool:
    """Return whether the values of a signal are shares, which people also write in per cent."""
    return "accuracy" in signal or signal in ("grad_zero_fraction", "eval_mode_gain", "eval_disagreement")


class LogValues:
    """Every number of a log: `series[signal][place]`, nested signals by their dotted path."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.series: dict[str, dict[int, float]] = {}
        for key, part in (("step", batch_records(records)), ("epoch", epoch_records(records))):
            for record in part:
                for name, value in record.items():
                    if name not in ("step", "epoch"):
                        self._add(name, record[key], value)
        for name in DERIVED_SIGNALS:
            if found := dict(signal_values(epoch_records(records), name)):
                self.series[name] = found

    def _add(self, name: str, place: int, value: object, depth: int = 0) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items() if depth < _DEPTH else ():
                self._add(f"{name}.{key}", place, inner, depth + 1)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.series.setdefault(name, {})[place] = float(value)

    def value(self, signal: str, step: int | None, epoch: int | None) -> float:
        """Return the value of a signal at a step, or at an epoch.

        Raises `UserError`, a sentence without the name of the file, for a signal or place that the log does not have.
        """
        place = place_of(signal)
        index = step if place == "step" else epoch
        if index is None:
            other = "epoch" if place == "step" else "step"
            once = "a batch" if place == "step" else "an epoch"
            raise UserError(f"{shown(signal)} is written once {once}: cite it with {place}:, not {other}:.")
        values = self.series.get(signal)
        if values is None:
            top = signal.split(".", 1)[0]
            below = [name for name in self.series if name.startswith(f"{top}.")]
            known = below or [name for name in self.series if _place_or_none(name) == place]
            raise UserError(f"the log has no {shown(signal)!r}: {suggestion(signal, known)}")
        if index not in values:
            at = sorted(values)
            there = f"from {at[0]} to {at[-1]}" if len(at) > 1 else f"{at[0]} only"
            raise UserError(f"the log has no {shown(signal)} at {place} {index}: it has {there}.")
        return values[index]

    def agrees(self, written: str, signal: str, index: int, *, within: int = 0) -> bool:
        """Return whether a number as written is the value of a signal at a place, or at most `within` places off."""
        values, fraction = self.series.get(signal, {}), is_fraction(signal)
        return any(
            agrees(written, values[at], fraction=fraction)
            for at in range(index - within, index + within + 1)
            if at in values
        )

    def holds(self, written: str, signal: str) -> bool:
        """Return whether a number as written is any value of a signal; a nested signal stands for all its parts."""
        if signal in self.series:
            return self._holds(written, signal)
        return any(self._holds(written, name) for name in self.series if name.startswith(f"{signal}."))

    def _holds(self, written: str, name: str) -> bool:
        try:
            number = read_number(written)
        except ValueError:
            return False
        fraction = is_fraction(name)
        if isinstance(number, float):
            return any(agrees(written, value) for value in self.series[name].values())
        ordered = self._ordered[name]
        for reading in number:
            for share in (1.0, 0.01) if fraction else (1.0,):
                middle, unit = float(reading.value) * share, float(reading.unit) * share
                first = bisect_left(ordered, middle - 1.001 * unit)
                for value in ordered[first:]:
                    if value > middle + 1.001 * unit:
                        break
                    if agrees(written, value, fraction=fraction):
                        return True
        return False

    @cached_property
    def _ordered(self) -> dict[str, list[float]]:
        return {
            name: sorted(value for value in values.values() if math.isfinite(value))
            for name, values in self.series.items()
        }

    def departures(self, signal: str, healthy: "LogValues") -> Iterator[int]:
        """Yield, in order, the places at which a signal lies outside what the healthy run shows there."""
        beside = healthy.series.get(signal, {})
        for place, value in self.series.get(signal, {}).items():
            if place in beside and departs(signal, value, beside[place]):
                yield place


@lru_cache(maxsize=64)
def first_departure(run: LogValues, healthy: LogValues) -> tuple[str, int] | None:
    """Return the signal and place at which a run first departs from a healthy one, steps before epochs.

    Nested signals are left out: a mean over a layer is near zero, where any difference is a large share.
    """
    names = (name for name in run.series if "." not in name)
    first = ((name, next(run.departures(name, healthy), None)) for name in names)
    found = [(name, place) for name, place in first if place is not None]
    return min(found, key=lambda item: (_place_or_none(item[0]) == "epoch", item[1]), default=None)


def _place_or_none(signal: str) -> Place | None:
    try:
        return place_of(signal)
    except UserError:
        return None


@lru_cache(maxsize=64)
def log_values(log: str) -> LogValues:
    """Return the values of a log, read once for many reports. Raises `UserError` for a log that cannot be read."""
    return LogValues(parse_log(log_lines(log), "metrics.log"))


def departs(signal: str, value: float, healthy: float) -> bool:
    """Return whether a value lies outside what a healthy run under the same seed shows at the same place.

    It does if they differ by more than half of the larger one, or a twentieth for a signal of epochs.
    """
    if not (math.isfinite(value) and math.isfinite(healthy)):
        return not (value == healthy or (math.isnan(value) and math.isnan(healthy)))
    larger = max(abs(value), abs(healthy))
    share = _EPOCH_SHARE if _place_or_none(signal) == "epoch" else _STEP_SHARE
    return larger > _NOTHING.get(signal, 0.0) and abs(value - healthy) > share * larger
