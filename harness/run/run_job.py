"""The process that trains: it makes one run and completes the run's folder. Only `launch` starts it."""

import errno
import hashlib
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data import CLASS_NAMES
from harness.errors import UserError, from_os_error, naming
from harness.files import sha256_line
from harness.page.run_page import write_run_page
from harness.run.launch import Reporter, serve
from harness.run.metrics_log import to_strict
from harness.run.provenance import git_commit, harness_hash, platform_class, versions
from harness.run.run_folder import (
    JOB_FILE,
    locked_job_file,
    partial_folder,
    prepare_partial,
    publish,
    refuse_foreign_folder,
)
from harness.run.settings import RunJob
from harness.workspace import CHECKPOINT, CHECKSUM, EXPERIMENT, META, METRICS_LOG, RESULT, source_hash

if TYPE_CHECKING:  # both are imported when the run begins: torch must find its variables first
    from harness.data.datasets import Dataset
    from harness.trainer import TrainingResult


def make_run(job: RunJob, reporter: Reporter) -> None:
    """Make the run. Its folder takes the final name only when everything is in it."""
    import torch

    from harness.canonical_setup import apply_numerics
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.trainer import train

    settings = job.settings
    apply_numerics(settings.numerics, settings.device)
    if settings.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            "There is no CUDA card that this PyTorch can use: leave DEVICE=cuda out to run on the CPU."
        )
    folder = Path(job.folder)
    refuse_foreign_folder(folder)
    partial = partial_folder(folder)
    with naming(partial), locked_job_file(partial) as job_file:
        prepare_partial(job, partial, job_file)
        data = load_dataset(settings.dataset)
        # Errors name the student's own file, if the source came from one.
        source_path = Path(job.source_path) if job.source_path else partial / EXPERIMENT
        try:
            result = train(
                load_experiment(source_path, job.source),
                tensor_data(data),
                settings,
                partial,
                resume=job.resume,
                progress=reporter.progress,
            )
        except UserError as error:
            log = partial / METRICS_LOG
            kept = log.is_file() and log.stat().st_size
            raise UserError(f"{error} The log so far is in {log}." if kept else str(error)) from error
        summary = _complete_folder(job, partial, result, data)
        # From here on there is nothing left to stop.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        publish(partial, folder)
    reporter.send("finished", result=summary)


def _complete_folder(job: RunJob, folder: Path, result: "TrainingResult", data: "Dataset") -> dict[str, Any]:
    """Write digest, provenance, result and page beside log and checkpoint; return what `result.json` holds."""
    checkpoint = (folder / CHECKPOINT).read_bytes()
    (folder / CHECKSUM).write_text(sha256_line(checkpoint, CHECKPOINT), encoding="utf-8")
    _write_json(folder / META, _provenance(job, result, data))
    last = result.last_epoch
    summary: dict[str, Any] = to_strict(
        {
            "seed": job.settings.seed,
            "recipe": job.recipe,
            "run": job.run,
            "checkpoint_path": CHECKPOINT,
            "checkpoint_sha256": hashlib.sha256(checkpoint).hexdigest(),
            "final_train_loss": result.last_batch["loss"],
            "final_val_metric": last["val_accuracy"]
            if last["val_accuracy"] is not None
            else last["val_loss"],
            "final_val_loss": last["val_loss"],
            "final_val_accuracy": last["val_accuracy"],
            "steps": result.steps,
            "epochs": result.epochs,
            "first_non_finite_step": result.first_non_finite_step,
            "guardrails": [
                {"step": finding.step, "level": finding.level, "message": finding.message}
                for finding in result.findings
            ],
            "confusion": result.confusion,
            "class_names": None if result.confusion is None else list(CLASS_NAMES[data.name]),
            "status": "finished",
        }
    )
    _write_json(folder / RESULT, summary)
    compare_with = Path(job.compare_with) if job.compare_with else None
    write_run_page(folder, title=job.title, compare_with=compare_with)
    return summary


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(to_strict(value), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _provenance(job: RunJob, result: "TrainingResult", data: "Dataset") -> dict[str, Any]:
    settings = job.settings
    return {
        "format_version": 1,
        "recipe": job.recipe,
        "experiment": job.experiment,
        "run": job.run,
        "seed": settings.seed,
        "command": settings.command(job.recipe, "experiment.py" if job.run == "fixed" else None),
        "git_commit": git_commit(),
        "source_sha256": source_hash(job.source),
        "harness_sha256": harness_hash(),
        "dataset": data.name,
        "dataset_digest": data.digest,
        "epochs": result.epochs,
        "batch_size": result.batch_size,
        "versions": versions(),
        "platform_class": platform_class(settings.numerics, settings.device),
    }


def _mistake(error: OSError, line: str) -> UserError | None:
    """Return a message for an error of the file system that the user can fix, or None.

    Our own files can only be missing if somebody removed them.
    """
    partial = partial_folder(Path(RunJob.from_json(line).folder))
    mistake = from_os_error(error)
    if error.errno == errno.ENOENT and partial.parent.is_dir():
        if (partial / JOB_FILE).exists():
            return None
        return UserError(f"{partial} was removed during the run: start the run again.")
    if mistake is not None and (partial / CHECKPOINT).is_file():
        return UserError(f"{mistake} Then --resume (RESUME=1) continues from {partial}.")
    return mistake


if __name__ == "__main__":
    sys.exit(serve(lambda line, reporter: make_run(RunJob.from_json(line), reporter), _mistake))
