"""The same steps twice from the same seed: are the log and the weights the same bytes?"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.checks.differences import Difference, first_difference
from harness.checks.evidence import Evidence, short
from harness.checks.subject import Subject
from harness.run.checkpoint import CHECKPOINT
from harness.run.metrics_log import read_metrics_log
from harness.trainer import METRICS_LOG, train

STEPS = 10

Outcome = Literal["same", "differs"]


@dataclass(frozen=True)
class Repeat:
    """The first difference of the two logs, and whether the checkpoints have the same bytes."""

    steps: int
    difference: Difference | None
    same_checkpoint: bool

    @property
    def outcome(self) -> Outcome:
        """What came of it."""
        return "same" if self.difference is None and self.same_checkpoint else "differs"


def measure(subject: Subject, *, steps: int = STEPS) -> Repeat:
    """Train twice for some steps, with an evaluation at the end, as a run does."""
    settings = replace(subject.settings, max_steps=steps, epochs=1)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        folders = [Path(scratch) / name for name in ("first", "second")]
        for folder in folders:
            folder.mkdir()
            train(subject.experiment(), subject.tensors(), settings, folder)
        logs = [read_metrics_log(folder / METRICS_LOG) for folder in folders]
        checkpoints = [(folder / CHECKPOINT).read_bytes() for folder in folders]
    return Repeat(steps, first_difference(*logs), checkpoints[0] == checkpoints[1])


def show(measured: Repeat) -> Evidence:
    """Return where the two part."""
    difference = measured.difference
    return Evidence(
        what=f"{measured.steps} steps and an evaluation, twice from the same seed",
        outcome=measured.outcome,
        said=(
            f"{difference.place}, {difference.quantity}: {short(difference.first)} and {short(difference.second)}"
            if difference
            else f"logs equal, checkpoints {'equal' if measured.same_checkpoint else 'differ'}"
        ),
        figures={
            "first difference": None if difference is None else difference.place,
            "in": None if difference is None else difference.quantity,
            "once": None if difference is None else difference.first,
            "again": None if difference is None else difference.second,
            "same checkpoint": measured.same_checkpoint,
        },
    )
