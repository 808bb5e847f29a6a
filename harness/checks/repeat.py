"""Trains for 10 steps and an evaluation, twice from the same seed: are log and checkpoint the same bytes?

If they are, every difference between two runs has a cause that can be found. If they differ, find that first:
a draw outside the seed, a clock, or state that is kept between runs.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from harness.checks.lab.differences import first_difference
from harness.checks.lab.finding import Cell, Check, Finding, consequence, sound
from harness.checks.lab.subject import Subject
from harness.run.checkpoint import CHECKPOINT
from harness.run.metrics_log import read_metrics_log
from harness.trainer import METRICS_LOG, train

CHECK = Check(
    place=110,
    question="Do the same steps give the same bytes twice?",
    minutes=3,
    outcomes=(
        sound("same", "Two runs differ only for a cause that can be found.", "audit"),
        consequence(
            "differs",
            "Something draws by chance outside the seed. No two runs can be compared until you find it.",
            look="what draws random numbers, reads a clock, or keeps state between runs",
        ),
    ),
)
STEPS = 10


def measure(subject: Subject) -> Finding:
    """Train twice for some steps, with an evaluation at the end, as a run does."""
    settings = replace(subject.settings, max_steps=STEPS, epochs=1)
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        folders = [Path(scratch) / name for name in ("first", "second")]
        for folder in folders:
            folder.mkdir()
            train(subject.experiment(), subject.tensors(), settings, folder)
        difference = first_difference(*(read_metrics_log(folder / METRICS_LOG) for folder in folders))
        once, again = ((folder / CHECKPOINT).read_bytes() for folder in folders)
    same = once == again
    figures: dict[str, Cell] = dict.fromkeys(("first difference", "in", "once", "again"))
    summary = f"logs equal, checkpoints {'equal' if same else 'differ'}"
    if difference is not None:
        values = (difference.place, difference.quantity, difference.first, difference.second)
        figures = dict(zip(figures, values, strict=True))
        summary = str(difference)
    return Finding(
        f"{STEPS} steps and an evaluation, twice from the same seed",
        "same" if difference is None and same else "differs",
        summary,
        {**figures, "same checkpoint": same},
    )
