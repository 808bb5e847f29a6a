"""Where a run first computes something that is no number: the step, the operation, the layer and the tensor."""

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from harness.checks.evidence import Cell, Evidence, Line, Plot, Table, short
from harness.checks.non_finite import OperationWatch, Origin
from harness.checks.overfit import BLOW_UP
from harness.checks.subject import Subject
from harness.checks.walk import State, Walk, not_finite
from harness.errors import UserError
from harness.run.metrics_log import Record

SHOWN = 5

Outcome = Literal["finite", "grows", "non-finite"]


@dataclass(frozen=True)
class Anomaly:
    """The records of the run up to its first step that is not finite, or to its end.

    `origin` is the first operation of that step whose result is not finite, and `detected` what PyTorch's own anomaly
    detection said of the backward pass, if anything.
    """

    records: list[Record]
    failed_at: int | None
    what_failed: str
    origin: Origin | None
    detected: str

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        if self.failed_at is not None:
            return "non-finite"
        losses = [abs(record["loss"]) for record in self.records]
        return "grows" if max(losses) > BLOW_UP * losses[0] else "finite"


def measure(subject: Subject) -> Anomaly:
    """Make the run until something is not finite; go back one step and look at each of its operations."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        records, before, what = _until_it_fails(subject, Path(scratch))
        if before is None:
            return Anomaly(records, None, "", None, "")
        origin, detected = _replay(subject, Path(scratch), before)
    return Anomaly(records, records[-1]["step"], what, origin, detected)


def _until_it_fails(subject: Subject, folder: Path) -> tuple[list[Record], State | None, str]:
    """Return the records, and the state before the step that failed, if one did, with what failed in it."""
    records: list[Record] = []
    with Walk(subject, folder) as walk:
        while not walk.over:
            before = walk.state()
            records.append(walk.step())
            if what := not_finite(walk, records[-1]):
                return records, before, what
            walk.end_epoch()
    return records, None, ""


def _replay(subject: Subject, folder: Path, before: State) -> tuple[Origin | None, str]:
    with Walk(subject, folder) as walk:
        walk.restore(before)
        watch = OperationWatch(walk.training.model, walk.training.experiment.path)
        with watch.hooked():
            detected = _with_anomaly_detection(lambda: _watched(watch, walk))
    return watch.origin, detected


def _watched(watch: OperationWatch, walk: Walk) -> None:
    with watch:
        walk.step()


def _with_anomaly_detection(step: Callable[[], None]) -> str:
    """Make a step with `torch.autograd`'s anomaly detection; return what it says of the first NaN in backward."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.set_detect_anomaly(True):
            try:
                step()
            except UserError as error:
                said = str(error).splitlines()[0]
                return said.partition("RuntimeError: ")[2] or said
    return ""


def show(measured: Anomaly) -> Evidence:
    """Return the origin, or else what came nearest to the end of the numbers."""
    records, origin = measured.records, measured.origin
    figures: dict[str, Cell] = {"steps": len(records), "first step that is not finite": measured.failed_at}
    if measured.failed_at is None:
        largest = {name: _largest(records, read) for name, read in _QUANTITIES.items()}
        figures |= {f"greatest {name}": value for name, (_, value) in largest.items()}
        step, value = largest["loss"]
        said = f"all {len(records)} steps are finite; the greatest loss is {short(value)}, at step {step}"
    else:
        figures |= {"what": measured.what_failed, "anomaly detection": measured.detected or None}
        said = f"step {measured.failed_at}: {measured.what_failed}"
        if origin is not None:
            figures |= {
                "first operation": origin.operation, "pass": origin.phase, "in": origin.where,
                "result": origin.tensor, "experiment": origin.line, "greatest value that went in": origin.largest,
                "all that went in was finite": origin.fresh,
            }  # fmt: skip
            said = f"step {measured.failed_at}, {origin.phase}: {origin.operation} ({origin.where}), {origin.tensor}"
    return Evidence(
        what="the whole run, step by step, until something is not finite; that step again with anomaly detection",
        outcome=measured.outcome,
        said=said,
        figures=figures,
        tables=(
            Table(
                caption="The last steps"
                if measured.failed_at is None
                else "The steps before, and the one that failed",
                columns=("step", *_QUANTITIES),
                rows=tuple(
                    (record["step"], *(read(record) for read in _QUANTITIES.values()))
                    for record in records[-SHOWN:]
                ),
            ),
        ),
        plots=(
            Plot(
                title="Loss, to the end or to the first that is not finite",
                x_label="step",
                y_label="loss",
                lines=(Line(label="loss", points=tuple((r["step"], r["loss"]) for r in records)),),
                scale="log",
            ),
        ),
    )


def _activation(place: str) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        found = record["activations"][place]
        return None if found is None else float(found["var"])

    return read


_QUANTITIES: dict[str, Callable[[Record], float | None]] = {
    "loss": lambda record: record["loss"],
    "gradient norm": lambda record: record["grad_norm"],
    "variance of the output": _activation("last"),
}


def _largest(
    records: list[Record], read: Callable[[Record], float | None]
) -> tuple[int | None, float | None]:
    found = [(value, record["step"]) for record in records if (value := read(record)) is not None]
    if not found:
        return None, None
    value, step = max(found)
    return step, value
