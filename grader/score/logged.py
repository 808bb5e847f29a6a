"""What two logs hold of each signal, and whether a number as written is among it."""

import decimal
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from harness.run.metrics_log import Record, batch_records, epoch_records
from harness.submission.cited_numbers import BATCH_SIGNALS, DERIVED_SIGNALS, agrees, written_number
from harness.symptoms import signal_values

# "about 400" is within a tenth of it.
ROUGHLY = 0.1


class LoggedValues:
    """Every number that the logs hold, by signal, with the figures that people take of them.

    Those are, of each signal and log: largest, smallest, mean and median of the run and of each epoch.
    """

    def __init__(self, *logs: Sequence[Record]) -> None:
        values: dict[str, set[float]] = {}
        for log in logs:
            for signal, numbers in _by_signal(_Log(log)).items():
                values.setdefault(signal, set()).update(numbers)
        self._sorted = {signal: sorted(numbers) for signal, numbers in values.items()}

    def hold(self, signals: Sequence[str], written: str) -> bool:
        """Say whether one of the signals has this number somewhere, at the digits that were written.

        6305.9 may be told as 6306 and, since many people cut digits off, as 6305.
        """
        bounds = _bounds(written)
        if bounds is None:
            return False
        low, high = bounds
        for signal in signals:
            numbers = self._sorted.get(signal, [])
            near = numbers[bisect_left(numbers, low) : bisect_right(numbers, high)]
            if any(agrees(written, number) or _cut(bounds, number) for number in near):
                return True
        return False

    def hold_within(self, signals: Sequence[str], low: float, high: float) -> bool:
        """Say whether one of the signals has a number between two bounds, themselves included."""
        for signal in signals:
            numbers = self._sorted.get(signal, [])
            if bisect_right(numbers, high) > bisect_left(numbers, low):
                return True
        return False

    @property
    def signals(self) -> list[str]:
        """The signals that there are."""
        return sorted(self._sorted)


def _bounds(written: str) -> tuple[float, float] | None:
    """Return an interval that surely holds every number that rounds to the written one."""
    try:
        number = written_number(written)
        if isinstance(number, float):
            return None
        value, unit = float(number[0]), float(number[1])
    except (ValueError, OverflowError, decimal.DecimalException):
        return None
    return value - unit, value + unit


def _cut(bounds: tuple[float, float], true: float) -> bool:
    value, unit = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    return value * true >= 0 and 0 <= abs(true) - abs(value) < unit


class _Log:
    """A log that equals itself alone, so that it can be looked up without being read."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records

    def __hash__(self) -> int:
        return id(self.records)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Log) and other.records is self.records


@lru_cache(maxsize=8)  # a class shares its broken runs, and often a fix
def _by_signal(shared: _Log) -> dict[str, set[float]]:
    log = shared.records
    series: dict[str, list[tuple[int, float]]] = {}
    for record in batch_records(log):
        for signal, value in _flat(record):
            series.setdefault(signal, []).append((int(record.get("epoch", 0)), value))
    for record in epoch_records(log):
        for signal, value in _flat(record):
            series.setdefault(signal, []).append((0, value))
    if "val_accuracy" in series:
        series["error_rate"] = [(at, 1.0 - value) for at, value in series["val_accuracy"]]
    for signal in DERIVED_SIGNALS:
        series[signal] = [(0, value) for _, value in signal_values(log, signal)]
    return {signal: _with_summaries(signal, pairs) for signal, pairs in series.items() if pairs}


def _flat(record: Record) -> Iterator[tuple[str, float]]:
    """Yield the finite numbers of a record by the first name of their signal; activations by mean and var too."""
    for name, value in record.items():
        if name in ("step", "epoch"):
            continue
        if isinstance(value, Mapping):
            for inner in value.values():
                if isinstance(inner, Mapping):
                    for key, number in inner.items():
                        if _is_number(number):
                            yield f"{name}.{key}", float(number)
                elif _is_number(inner):
                    yield name, float(inner)
        elif _is_number(value):
            yield name, float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _with_summaries(signal: str, pairs: list[tuple[int, float]]) -> set[float]:
    numbers = [value for _, value in pairs]
    found = {*numbers, statistics.fmean(numbers), statistics.median(numbers)}
    if signal in BATCH_SIGNALS:
        for epoch in {epoch for epoch, _ in pairs}:
            own = [value for at, value in pairs if at == epoch]
            found |= {statistics.fmean(own), statistics.median(own), max(own), min(own)}
    if signal == "grad_zero_fraction":  # "18 % of the gradient is alive"
        found |= {1.0 - value for value in found}
    return found
