"""The process that trains for the self-check: a trial a line on standard input, an outcome a line as answer.

`trials.py` starts it with the environment of portable numerics. Its one argument is the folder with MNIST and
CIFAR-10. It ends with its input.
"""

import hashlib
import json
import os
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path

from grader.selfcheck.trial import Outcome, Trial
from harness.canonical_setup import apply_numerics
from harness.checks import examine
from harness.checks.lab.subject import Subject
from harness.data.image_sets import Dataset
from harness.data.loading import load_dataset
from harness.errors import UserError
from harness.run.experiment import load_experiment, tensor_data
from harness.run.metrics_log import Record, read_metrics_log
from harness.run.settings import RunSettings
from harness.trainer import train

_EXPERIMENT = Path("experiment.py")
_TABLES = ("grad_mean", "grad_norm_by_parameter", "activations")  # most of a log; no symptom looks at them

_loaded = cache(load_dataset)


def outcome_of(trial: Trial, folder: Path, cache: Path) -> Outcome:
    """Train in an empty folder, then make the checks, each on a freshly loaded experiment."""
    try:
        return _trained(trial, folder, _loaded(trial.dataset, cache=cache))
    except UserError as error:
        return Outcome(os.getpid(), str(error), "", "", [], {}, [])


def _trained(trial: Trial, folder: Path, data: Dataset) -> Outcome:
    settings = RunSettings(seed=trial.seed, dataset=trial.dataset)
    subject = Subject(_EXPERIMENT, trial.source, settings, data)
    result = train(load_experiment(_EXPERIMENT, trial.source), tensor_data(data), settings, folder)
    return Outcome(
        process=os.getpid(),
        problem="",
        log_sha256=_sha256(folder / "metrics.log"),
        checkpoint_sha256=_sha256(folder / "checkpoint.pt"),
        records=[_judged_part(record) for record in read_metrics_log(folder / "metrics.log")],
        checks={name: examine(subject, name).outcome for name in trial.checks},
        warnings=[f"step {finding.step}: {finding.message}" for finding in result.findings],
    )


def _judged_part(record: Record) -> Record:
    return {name: value for name, value in record.items() if name not in _TABLES}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Answer every trial."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # at a terminal it comes here too; the parent decides
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what an experiment prints is no answer
    apply_numerics("portable")
    for line in sys.stdin:
        trial = Trial(**json.loads(line))
        with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
            outcome = outcome_of(trial, Path(folder), Path(sys.argv[1]))
        answers.write(json.dumps(vars(outcome)) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
