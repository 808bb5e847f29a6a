"""Evaluate the checkpoint of a script with `--evaluate`, and compare the metrics with the log.

The logged metrics must belong to the weights that the run keeps. If they do not, the script keeps other weights
than it has evaluated, loads others, or evaluates a loaded network otherwise: with other statistics, another mode, or
other data.
"""

import math
import tempfile
from pathlib import Path

from harness.checks.core.finding import Finding, Table, short
from harness.errors import UserError
from harness.scripts.observation import observe
from harness.scripts.run import evaluate_checkpoint
from harness.scripts.script import CHECKPOINT, ScriptSubject

# figure                                 | healthy | broken | bound     | source
# greatest relative distance of a figure | 0       | 0.31   | SAME 1e-3 | trained weights, not their average, are kept
#
# Healthy: twelve scripts, the same bits. Broken: one script and one seed.
SAME = 1e-3


def measure(subject: ScriptSubject) -> Finding:
    """Run the script until it has saved twice, evaluate this checkpoint, and search the log for the metrics."""
    seen = observe(subject.script, subject.data, subject.settings, "natural", ends=lambda seen: len(seen.saved) > 1)
    if not seen.saved or not seen.figures:
        return Finding("not-evaluated", "the script saves no checkpoint, or logs no validation metric", {})
    updates, content = seen.saved[-1]
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        (Path(folder) / CHECKPOINT).write_bytes(content)
        try:
            found = evaluate_checkpoint(subject.script, subject.data, Path(folder))
        except UserError as error:
            return Finding("fails", f"with --evaluate, the script fails: {error}", {})
    distances = [_distance(logged, found) for _, logged in seen.figures]
    nearest = min(range(len(distances)), key=distances.__getitem__)
    _, logged = seen.figures[nearest]
    rows = tuple((name, logged.get(name), found.get(name)) for name in logged)
    name, one, other = max(rows, key=lambda row: _apart(row[1], row[2]))
    same = distances[nearest] <= SAME
    text = f"the metrics of validation {nearest + 1} of {len(distances)}" if same else (
        f"{name} is {short(other)}, and the nearest in the log is {short(one)}")  # fmt: skip
    return Finding(
        "agrees" if same else "other-figures",
        f"checkpoint after {updates} updates: {text}",
        {"greatest relative distance": distances[nearest]},
        tables=(Table("Metrics", ("metric", "in the log", "of the checkpoint"), rows),),
    )


def _distance(logged: dict[str, float], found: dict[str, float | None]) -> float:
    return max((_apart(value, found.get(name)) for name, value in logged.items()), default=math.inf)


def _apart(one: float | None, other: float | None) -> float:
    """Return the relative distance of two figures; infinite if only one of them exists or is finite."""
    if one is None or other is None or not (math.isfinite(one) and math.isfinite(other)):
        return 0.0 if str(one) == str(other) else math.inf
    return abs(one - other) / max(abs(one), abs(other), 1e-3)
