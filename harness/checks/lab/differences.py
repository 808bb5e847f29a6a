"""Where two runs first differ: at which step or epoch, in which quantity, by how much, and what they were made from."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from harness.checks.lab.finding import (
    Cell,
    Check,
    Finding,
    Line,
    Plot,
    Table,
    consequence,
    short,
    sound,
)  # fmt: skip
from harness.run.metrics_log import Record, batch_records, read_metrics_log

COMPARE = Check(
    place=0,
    name="compare",
    question="Where do the two runs first differ?",
    minutes=2,
    outcomes=(
        sound(
            "same",
            "Both runs computed the same: what differs between them, if anything, has no effect on training.",
        ),
        consequence(
            "differs",
            "Up to there both computed the same: the cause of the difference acts there for the first time.",
            look="what the two experiments do differently in that step, quantity by quantity",
        ),
    ),
)


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


def compare_runs(first: Path, second: Path, names: tuple[str, str]) -> Finding:
    """Compare the logs and the provenance in two folders of runs. Raises `UserError` for an unreadable log."""
    logs = read_metrics_log(first / "metrics.log"), read_metrics_log(second / "metrics.log")
    found = first_difference(*logs)
    figures: dict[str, Cell] = {"records": f"{len(logs[0])} and {len(logs[1])}"}
    summary = f"all {len(logs[0])} records are equal"
    tables = []
    if found is not None:
        figures |= {"first difference": found.place, "quantity": found.quantity}
        figures |= {names[0]: found.first, names[1]: found.second, "relative distance": found.distance}
        summary = str(found)
        pair = next((pair for pair in zip(*logs, strict=False) if next(differences(*pair), None)), None)
        if pair is not None:
            rows = tuple((d.quantity, d.first, d.second, d.distance) for d in differences(*pair))
            columns = ("quantity", *names, "relative distance")
            tables.append(Table(f"What differs at {found.place}", columns, rows))
    origins = _origin(first), _origin(second)
    parts = tuple(
        (part, *(str(origin.get(part, "-")) for origin in origins))
        for part in dict.fromkeys([*origins[0], *origins[1]])
        if origins[0].get(part) != origins[1].get(part) and part not in ("run", "command")
    )
    if parts:
        tables.append(Table("What the runs were made from", ("", *names), parts))
    curves = tuple(
        Line(name, tuple((record["step"], record["loss"]) for record in batch_records(log)))
        for name, log in zip(names, logs, strict=True)
    )
    return Finding(
        f"the logs of {names[0]} and {names[1]}, record by record",
        "same" if found is None else "differs",
        summary,
        figures,
        tables=tuple(tables),
        plots=(Plot("Training loss", "loss", curves),),
    )


def _origin(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "checkpoint.pt.meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # a run without provenance is compared by its log
    return found if isinstance(found, dict) else {}


def first_difference(first: Sequence[Record], second: Sequence[Record]) -> Difference | None:
    """Return the first quantity, in the order of the logs, that is not the same in both; None for equal logs."""
    for own, other in zip_longest(first, second):
        if own is None or other is None:
            longer = own or other
            loss = longer.get("loss", longer.get("val_loss"))
            return Difference(place_of(longer), "records", *((None, loss) if own is None else (loss, None)))
        for difference in differences(own, other):
            return difference
    return None


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
    return f"step {record['step']}" if "step" in record else f"epoch {record.get('epoch')}"


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
