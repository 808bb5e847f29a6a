"""Makes the whole run until something is not finite, then makes that step again and watches each operation.

It names the first operation whose result is NaN or infinite, with its layer, the tensor, the line of the
experiment and the largest value that went in. What went in is the trace to follow: an exponential of 90
overflows float32, a division by a norm of 0 gives NaN.

Source of the bound: a loss of 100 times the first one has blown up (see `overfit`).
"""

import itertools
import math
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.checks.lab.finding import Cell, Check, Finding, Line, Plot, Table, consequence, short, sound
from harness.checks.lab.operations import OperationWatch
from harness.checks.lab.subject import Subject
from harness.checks.overfit import BLOW_UP
from harness.run.metrics_log import Record
from harness.trainer import Training

CHECK = Check(
    place=150,
    question="Where does it first compute a value that is not finite?",
    minutes=4,
    in_triage=False,
    outcomes=(
        sound("finite", "Every number is finite: overflow and division by zero are ruled out.", "gradients"),
        consequence("grows", "Every number is finite, but the loss has grown far.", "lr_tenth", "lr_find"),
        consequence(
            "non-finite",
            "This is the first operation whose result is not finite. Follow what went in.",
            look="that line, and the largest value that went in",
        ),
    ),
)
SHOWN = 5


def measure(subject: Subject) -> Finding:
    """Make the run until something is not finite; make it again up to that step and watch the step's operations."""
    records: list[Record] = []
    failed, origin = "", None
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        training, steps = subject.run(Path(scratch))
        for record in steps:
            records.append(record)
            if failed := _not_finite(training, record):
                origin = _watch(subject, Path(scratch), len(records) - 1)
                break
    losses = [abs(record["loss"]) for record in records]
    figures: dict[str, Cell] = {"steps": len(records)}
    if failed:
        outcome, at = "non-finite", records[-1]["step"]
        figures |= {"first step that is not finite": at, "what": failed, **(origin or {})}
        summary = f"step {at}: {failed}"
        if origin is not None:
            summary = "step {}, {pass}: {first operation} ({in}), {result}".format(at, **origin)
    else:
        outcome = "grows" if max(losses) > BLOW_UP * losses[0] else "finite"
        for name, read in _QUANTITIES.items():
            figures[f"greatest {name}"] = max(filter(None, map(read, records)), default=None)
        greatest = f"{short(max(losses))}, at step {losses.index(max(losses))}"
        summary = f"all {len(records)} steps are finite; the greatest loss is {greatest}"
    rows = tuple((r["step"], *(read(r) for read in _QUANTITIES.values())) for r in records[-SHOWN:])
    curve = Line.over_steps("loss", [record["loss"] for record in records])
    return Finding(
        "the whole run, step by step, until something is not finite; that step again, operation by operation",
        outcome,
        summary,
        figures,
        tables=(Table("The last steps", ("step", *_QUANTITIES), rows),),
        plots=(Plot("Loss, to the end or to the first that is not finite", "loss", (curve,)),),
    )


def _not_finite(training: Training, record: Record) -> str:
    """Say what of the step just made is not finite: its loss, gradient, weights or statistics; "" if all is."""
    if not math.isfinite(record["loss"]):
        return f"the loss is {record['loss']}"
    norm = record["grad_norm"]
    # A gradient scaler leaves out the updates whose gradients overflow: they do no harm.
    scaled = bool(training.experiment.scalers())
    if norm is not None and not math.isfinite(norm) and record["optimizer_steps"] and not scaled:
        return f"the norm of the gradient is {norm}"
    for name, tensor in (*training.model.named_parameters(), *training.model.named_buffers()):
        if tensor.is_floating_point() and not bool(tensor.detach().isfinite().all()):
            return f"{name} is not finite after the update"
    return ""


def _watch(subject: Subject, folder: Path, failing: int) -> dict[str, Cell] | None:
    """Make the run up to a step, and watch that step; return where it first goes wrong."""
    training, steps = subject.run(folder)
    for _ in itertools.islice(steps, failing):
        pass
    with OperationWatch(training.model, training.experiment.path) as watch:
        next(steps)
    return watch.origin


def _variance(record: Record) -> float | None:
    found = record["activations"]["last"]
    return None if found is None else float(found["var"])


_QUANTITIES: dict[str, Callable[[Record], float | None]] = {
    "loss": lambda record: record["loss"],
    "gradient norm": lambda record: record["grad_norm"],
    "variance of the output": _variance,
}
