"""Train for 10 steps and evaluate, twice with the same seed, and compare logs and checkpoints byte by byte.

If the bytes are equal, any difference between two runs comes from a change that you made. If they differ, first find
the cause: random numbers that the seed does not control, a clock, or state that remains after a run.
"""

import tempfile
from pathlib import Path

from harness.checks.core.finding import Finding
from harness.checks.core.subject import Subject
from harness.run.files import CHECKPOINT, METRICS_LOG
from harness.run.metrics_log import log_difference
from harness.run.training import TrainingRun

STEPS = 10


def measure(subject: Subject) -> Finding:
    """Train twice for some steps with an evaluation at the end, as a run does, and compare the files."""
    logs, checkpoints = [], []
    for _ in range(2):
        with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
            training = TrainingRun(subject.experiment(), subject.tensors(), subject.settings, Path(scratch), None)
            # Keep the schedule of the whole run, because it may depend on EPOCHS.
            training.steps = min(STEPS, training.steps)
            training.run(resume=False)
            logs.append((Path(scratch) / METRICS_LOG).read_bytes())
            checkpoints.append((Path(scratch) / CHECKPOINT).read_bytes())
    same_log, same_checkpoint = len(set(logs)) == 1, len(set(checkpoints)) == 1
    summary = f"logs equal, checkpoints {'equal' if same_checkpoint else 'differ'}"
    return Finding(
        "same" if same_log and same_checkpoint else "differs",
        summary if same_log else f"{METRICS_LOG}{log_difference(*logs)}",
        {"same log": same_log, "same checkpoint": same_checkpoint},
    )
