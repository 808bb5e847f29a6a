"""Two runs: where their logs first differ, in which quantity and by how much, and what they were made from."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.checks.checks import Outcome
from harness.checks.differences import Difference, differences, first_difference
from harness.checks.evidence import Cell, Evidence, Line, Plot, Table, short
from harness.run.metrics_log import Record, batch_records, read_metrics_log

OUTCOMES = {
    "same": Outcome(
        id="same",
        sound=True,
        reading="Both runs computed the same: what differs between them, if anything, has no effect on training.",
        look="what you expected to make a difference",
    ),
    "differs": Outcome(
        id="differs",
        reading="Up to there both computed the same: the cause of the difference acts there for the first time.",
        look="what the two experiments do differently in that step, in the order in which it computes the quantities",
    ),
}
_META = "checkpoint.pt.meta.json"


@dataclass(frozen=True)
class Compare:
    """The logs of two runs, their first difference, all that differs in that record, and their provenance."""

    names: tuple[str, str]
    logs: tuple[list[Record], list[Record]]
    first: Difference | None
    beside: tuple[Difference, ...]
    origins: tuple[tuple[str, str, str], ...]

    @property
    def outcome(self) -> str:
        """Whether the logs differ."""
        return "same" if self.first is None else "differs"


def measure(first: Path, second: Path, names: tuple[str, str]) -> Compare:
    """Read both logs. Raises `UserError` for a log that cannot be read."""
    logs = read_metrics_log(first / "metrics.log"), read_metrics_log(second / "metrics.log")
    found = first_difference(*logs)
    pair = next((pair for pair in zip(*logs, strict=False) if next(differences(*pair), None)), None)
    return Compare(
        names=names,
        logs=logs,
        first=found,
        beside=tuple(differences(*pair)) if pair else (),
        origins=tuple(_origins(_object(first / _META), _object(second / _META))),
    )


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # a run without provenance is compared by its log
    return found if isinstance(found, dict) else {}


def _origins(first: dict[str, Any], second: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield what the provenance of the two runs has differently."""
    for name in dict.fromkeys([*first, *second]):
        if first.get(name) != second.get(name) and name not in ("run", "command"):
            yield name, str(first.get(name, "-")), str(second.get(name, "-"))


def show(measured: Compare) -> Evidence:
    """Return the first difference, the others of that record, and both curves."""
    first, second = measured.names
    found = measured.first
    figures: dict[str, Cell] = {"records": f"{len(measured.logs[0])} and {len(measured.logs[1])}"}
    said = f"all {len(measured.logs[0])} records are equal"
    if found is not None:
        figures |= {
            "first difference": found.place,
            "quantity": found.quantity,
            first: found.first,
            second: found.second,
            "relative distance": found.distance,
        }
        said = f"{found.place}, {found.quantity}: {short(found.first)} and {short(found.second)}"
    place = found.place if found else ""
    return Evidence(
        what=f"the logs of {first} and {second}, record by record",
        outcome=measured.outcome,
        said=said,
        figures=figures,
        tables=tuple(_tables(measured, place)),
        plots=(
            Plot(
                title="Training loss",
                x_label="step",
                y_label="loss",
                lines=tuple(
                    _loss(name, log) for name, log in zip(measured.names, measured.logs, strict=True)
                ),
                scale="log",
            ),
        ),
    )


def _tables(measured: Compare, place: str) -> Iterator[Table]:
    if measured.beside:
        yield Table(
            caption=f"What differs at {place}",
            columns=("quantity", *measured.names, "relative distance"),
            rows=tuple((d.quantity, d.first, d.second, d.distance) for d in measured.beside),
        )
    if measured.origins:
        yield Table(
            caption="What the runs were made from", columns=("", *measured.names), rows=measured.origins
        )


def _loss(name: str, log: Sequence[Record]) -> Line:
    return Line(label=name, points=tuple((record["step"], record["loss"]) for record in batch_records(log)))
