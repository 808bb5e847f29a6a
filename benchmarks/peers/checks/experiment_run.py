"""The run that the checks of every tool make: what `make verify` does with a student's experiment.

The harness starts a process of its own for it, so that nothing of the experiment runs in the process that checks.
"""

import tempfile
from pathlib import Path
from typing import Any

from harness.run.settings import RunJob, RunSettings
from harness.student.runs import launch

# The exercise's own symptom: a network that never recovers stays below this validation accuracy.
LEAST_ACCURACY = 0.5


def run_experiment(path: str = "experiment.py") -> dict[str, Any]:
    """Train a student's experiment as the exercise says and return what `result.json` holds.

    Raises `harness.errors.UserError`, with a message for the student, where it does not come to its end.
    """
    source = Path(path).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        job = RunJob(
            settings=RunSettings(seed=42, dataset="digits"),
            recipe="huge_lr",
            experiment="digits_mlp",
            title="The loss explodes in the first epoch",
            run="fixed",
            source=source.read_text(encoding="utf-8"),
            folder=str(Path(scratch) / "fixed"),
            source_path=str(source),
        )
        return launch(job, resumable=False, bar=False)


def reported_sha256(path: str = "checkpoint.pt.sha256") -> str:
    """Return the hash of the checkpoint that the student says the fixed run ended with."""
    return Path(path).read_text(encoding="utf-8").split()[0]
