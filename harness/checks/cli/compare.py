"""Compares two finished runs: where their logs first differ, by how much, and what the runs were made from."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.checks.cli.report import Report
from harness.checks.cli.target import run_folder
from harness.checks.lab.differences import Difference, differences, first_difference
from harness.checks.lab.finding import Cell, Finding, Line, Outcome, Plot, Table, short
from harness.errors import UserError
from harness.run.metrics_log import Record, batch_records, read_metrics_log

_SAME = Outcome(
    "same",
    "Both runs computed the same: what differs between them, if anything, has no effect on training.",
    sound=True,
    look="what you expected to make a difference",
)
_DIFFERS = Outcome(
    "differs",
    "Up to there both computed the same: the cause of the difference acts there for the first time.",
    look="what the two experiments do differently in that step, in the order in which it computes the quantities",
)
_META = "checkpoint.pt.meta.json"


def compare_runs(first: str, second: str | None, work: Path) -> tuple[tuple[str, str], Report]:
    """Compare two runs, or the broken and the fixed run of one exercise; return their names and the report.

    Raises `UserError` if a run is not there or its log cannot be read.
    """
    if second is None:
        if "/" in first:
            raise UserError(f"Compare {first} with which run? Name a second one.")
        first, second = f"{first}/broken", f"{first}/fixed"
    names = (first, second)
    finding = compare(run_folder(first, work), run_folder(second, work), names)
    outcome = _SAME if finding.outcome == "same" else _DIFFERS
    question, command = "Where do the two runs first differ?", f"harness compare {first} {second}"
    return names, Report("compare", question, command, 2, finding, outcome, (f"read: {outcome.look}",))


def compare(first: Path, second: Path, names: tuple[str, str]) -> Finding:
    """Compare the logs and the provenance in two folders of runs. Raises `UserError` for an unreadable log."""
    logs = read_metrics_log(first / "metrics.log"), read_metrics_log(second / "metrics.log")
    found = first_difference(*logs)
    figures: dict[str, Cell] = {"records": f"{len(logs[0])} and {len(logs[1])}"}
    summary = f"all {len(logs[0])} records are equal"
    tables: list[Table] = []
    if found is not None:
        figures |= {
            "first difference": found.place,
            "quantity": found.quantity,
            names[0]: found.first,
            names[1]: found.second,
            "relative distance": found.distance,
        }
        summary = f"{found.place}, {found.quantity}: {short(found.first)} and {short(found.second)}"
        tables += _same_record(logs, found, names)
    origins = tuple(_origins(_object(first / _META), _object(second / _META)))
    if origins:
        tables.append(Table(caption="What the runs were made from", columns=("", *names), rows=origins))
    curves = tuple(_curve(name, log) for name, log in zip(names, logs, strict=True))
    return Finding(
        what=f"the logs of {names[0]} and {names[1]}, record by record",
        outcome="same" if found is None else "differs",
        summary=summary,
        figures=figures,
        tables=tuple(tables),
        plots=(Plot(title="Training loss", y_label="loss", lines=curves),),
    )


def _same_record(
    logs: tuple[list[Record], list[Record]], found: Difference, names: tuple[str, str]
) -> Iterator[Table]:
    """Yield a table of everything that differs in the first record that differs, if both logs have it."""
    pair = next((pair for pair in zip(*logs, strict=False) if next(differences(*pair), None)), None)
    if pair is not None:
        yield Table(
            caption=f"What differs at {found.place}",
            columns=("quantity", *names, "relative distance"),
            rows=tuple((d.quantity, d.first, d.second, d.distance) for d in differences(*pair)),
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


def _curve(name: str, log: list[Record]) -> Line:
    return Line(label=name, points=tuple((record["step"], record["loss"]) for record in batch_records(log)))
