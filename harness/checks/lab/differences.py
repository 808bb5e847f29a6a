"""Where two logs first differ: at which step or epoch, in which quantity, by how much."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.checks.lab.finding import short
from harness.run.metrics_log import Record


@dataclass(frozen=True)
class Difference:
    """One quantity that differs, by the name it has in the log; None stands for a value that is missing."""

    place: str
    quantity: str
    first: float | None
    second: float | None

    def __str__(self) -> str:
        return f"{self.place}, {self.quantity}: {short(self.first)} and {short(self.second)}"

    @property
    def distance(self) -> float | None:
        """How far apart the two values are, relative to the first where that is not 0."""
        if self.first is None or self.second is None:
            return None
        if not (math.isfinite(self.first) and math.isfinite(self.second)):
            return math.inf
        distance = abs(self.second - self.first)
        return distance / abs(self.first) if self.first else distance


def first_difference(first: Sequence[Record], second: Sequence[Record]) -> Difference | None:
    """Return the first quantity, in the order of the logs, that is not the same in both; None for equal logs."""
    for own, other in zip(first, second, strict=False):
        for difference in differences(own, other):
            return difference
    if len(first) == len(second):
        return None
    longer = first if len(first) > len(second) else second
    record = longer[min(len(first), len(second))]
    loss = record.get("loss", record.get("val_loss"))
    return Difference(place_of(record), "records", *((loss, None) if longer is first else (None, loss)))


def differences(own: Record, other: Record) -> Iterator[Difference]:
    """Yield what differs between two records."""
    theirs = dict(numbers_of(other))
    place = place_of(own)
    for name, value in numbers_of(own):
        found = theirs.pop(name, None)
        if not _same(value, found):
            yield Difference(place, name, value, found)
    for name, value in theirs.items():
        yield Difference(place, name, None, value)


def place_of(record: Record) -> str:
    """Return where a record stands in its run."""
    return f"step {record['step']}" if "step" in record else f"epoch {record['epoch']}"


def numbers_of(record: Record, prefix: str = "") -> Iterator[tuple[str, float | None]]:
    """Yield every number of a record under its name in the log, names of tables joined by dots."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from numbers_of(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return first == second or (math.isnan(first) and math.isnan(second))
