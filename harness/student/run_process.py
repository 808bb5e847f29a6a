"""The training process: make one run in a temporary folder, and rename the folder at the end.

Only `harness.student.runs.launch` starts this process.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from harness.errors import UserError, from_os_error, name_place
from harness.files import sha256_line
from harness.page.run_page import write_run_page
from harness.recipes.form import is_script
from harness.run.files import CHECKPOINT, CHECKSUM, EXPERIMENT, META, METRICS_LOG, RESULT, source_hash
from harness.run.launch import Reporter, serve
from harness.run.metrics_log import to_strict
from harness.run.provenance import git_commit, harness_hash, platform_class, versions
from harness.run.settings import DEFAULT_POLICY, RunJob

if TYPE_CHECKING:  # imported only in functions: torch needs its environment variables before its import
    from harness.data.datasets import Dataset
    from harness.data.folder import DataFolder
    from harness.run.training import TrainingRun
    from harness.scripts.run import ScriptRun


# The folder of an unfinished run contains this file, and the training process locks the file.
JOB_FILE = "job.json"
_DATA = "data"  # the folder with the files that a script reads
_FILES_OF_A_RUN = {METRICS_LOG, CHECKPOINT, RESULT}


def make_run(job: RunJob, reporter: Reporter) -> None:
    """Make a run. The folder of the run gets its final name only when all files are complete."""
    import torch

    from harness.canonical_setup import apply_numerics

    settings = job.settings
    apply_numerics(settings.numerics, settings.device)
    if settings.device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError("This PyTorch finds no CUDA device: remove DEVICE=cuda to run on the CPU.")
    folder = Path(job.folder)
    refuse_foreign_folder(folder)
    partial = partial_folder(folder)
    with name_place(partial), locked_job_file(partial) as job_file:
        prepare_partial(job, partial, job_file)
        try:
            training, data = (_run_script if is_script(job.source) else _train)(job, partial, reporter)
        except UserError as error:
            log = partial / METRICS_LOG
            kept = log.is_file() and log.stat().st_size
            raise UserError(f"{error} The unfinished log is in {log}." if kept else str(error)) from error
        summary = _complete_folder(job, partial, training, data)
        # All files are complete, so Ctrl-C must not prevent the renaming of the folder.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        publish(partial, folder)
    reporter.send("finished", result=summary)


def _source_path(job: RunJob, partial: Path) -> Path:
    """Return the file that error messages name: the student's own file, if the source came from it."""
    return Path(job.source_path) if job.source_path else partial / EXPERIMENT


def _train(job: RunJob, partial: Path, reporter: Reporter) -> tuple["TrainingRun", "Dataset"]:
    """Run an experiment with functions."""
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.training import train

    data = load_dataset(job.settings.dataset)
    experiment = load_experiment(_source_path(job, partial), job.source)
    training = train(
        experiment,
        tensor_data(data),
        job.settings,
        partial,
        resume=job.resume,
        progress=reporter.progress,
        policy=job.guardrails,
        instruments=True,
    )
    return training, data


def _run_script(job: RunJob, partial: Path, reporter: Reporter) -> tuple["ScriptRun", "DataFolder"]:
    """Run an experiment that is a script."""
    from harness.data.folder import load_folder
    from harness.scripts.run import run_script
    from harness.scripts.script import Script

    data = load_folder(job.settings.dataset)
    script = Script(_source_path(job, partial), job.source)
    files = data.write(partial / _DATA)
    training = run_script(
        script,
        files,
        job.settings,
        partial,
        resume=job.resume,
        progress=reporter.progress,
        policy=job.guardrails,
        instruments=True,
    )
    shutil.rmtree(files)
    return training, data


def _complete_folder(
    job: RunJob, folder: Path, training: "TrainingRun | ScriptRun", data: "Dataset | DataFolder"
) -> dict[str, Any]:
    """Write digest, provenance, result and page into the folder of a run. Return the content of `result.json`."""
    checkpoint = (folder / CHECKPOINT).read_bytes()
    (folder / CHECKSUM).write_text(sha256_line(checkpoint, CHECKPOINT), encoding="utf-8")
    _write_json(folder / META, _provenance(job, training, data))
    last = training.last_epoch
    summary: dict[str, Any] = to_strict(
        {
            "seed": job.settings.seed,
            "recipe": job.recipe,
            "run": job.run,
            "checkpoint_path": CHECKPOINT,
            "checkpoint_sha256": hashlib.sha256(checkpoint).hexdigest(),
            "final_train_loss": training.last_batch["loss"],
            "final_val_metric": last["val_accuracy"] if last["val_accuracy"] is not None else last["val_loss"],
            "final_val_loss": last["val_loss"],
            "final_val_accuracy": last["val_accuracy"],
            "steps": training.position["step"],
            "epochs": training.position["epoch"],
            "first_non_finite_step": training.first_non_finite_step,
            "guardrails": [
                {"step": finding.step, "level": finding.level, "message": finding.message}
                for finding in training.findings
            ],
            "status": "finished",
        }
    )
    _write_json(folder / RESULT, summary)
    compare_with = Path(job.compare_with) if job.compare_with else None
    write_run_page(folder, title=job.title, compare_with=compare_with)
    return summary


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(to_strict(value), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _provenance(job: RunJob, training: "TrainingRun | ScriptRun", data: "Dataset | DataFolder") -> dict[str, Any]:
    settings = job.settings
    # Default runs have no such entry, so that their bytes do not depend on it.
    policy = {} if job.guardrails == DEFAULT_POLICY else {"guardrails": asdict(job.guardrails)}
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
        "epochs": training.position["epoch"],
        "batch_size": training.batch_size,
        "versions": versions(),
        "platform_class": platform_class(settings.numerics, settings.device),
        **policy,
    }


def partial_folder(folder: Path) -> Path:
    """Return the temporary folder in which the run `folder` is made."""
    return folder.with_name(folder.name + ".partial")


def refuse_foreign_folder(folder: Path) -> None:
    """Raise `UserError` if a new run in `folder` would replace anything that is not a run."""
    if not folder.is_dir():
        if os.path.lexists(folder):
            raise UserError(f"{folder} is a file, and a run needs a folder: choose another name.")
        return
    names = {path.name for path in folder.iterdir()}
    if folder == Path.cwd() or (names and not names & _FILES_OF_A_RUN):
        raise UserError(f"{folder} contains files that are not part of a run: choose a new folder for the run.")


def locked_job_file(partial: Path) -> IO[str]:
    """Open and lock the job file of an unfinished run. Create the file if it is missing.

    The operating system releases the lock when this process ends, even if the process is killed.
    """
    partial.mkdir(parents=True, exist_ok=True)
    job_file = (partial / JOB_FILE).open("a+", encoding="utf-8")
    try:
        fcntl.flock(job_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        job_file.close()
        raise UserError(
            f"Another process is writing the same run into {partial}: wait until it is done, or stop it first."
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # a file system without locks
            raise
    return job_file


def prepare_partial(job: RunJob, partial: Path, job_file: IO[str]) -> None:
    """Prepare the temporary folder so that the run can continue (if `job.resume`) or start from the beginning."""
    job_file.seek(0)
    text = job_file.read()
    going_on = job.resume and text != ""
    if going_on:
        remedy = "start the run without --resume."
        try:
            before = RunJob.from_json(text)
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{partial / JOB_FILE} is damaged: {remedy}") from None
        if before.source != job.source:
            raise UserError(f"The run in {partial} was started with another experiment.py: {remedy}")
        if before.settings != job.settings:
            raise UserError(
                f"The run in {partial} was started with other settings: give the same settings, or {remedy}"
            )
    for path in partial.iterdir():
        # A hidden file is incomplete: the run was killed while it wrote this file.
        if path.name.startswith(".") or not (going_on or path.name == JOB_FILE):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if not going_on:
        (partial / EXPERIMENT).write_text(job.source, encoding="utf-8")
        job_file.truncate(0)
        job_file.write(job.to_json())
        job_file.flush()


def publish(partial: Path, folder: Path) -> None:
    """Rename the temporary folder to `folder`.

    Delete an older run there, but keep files that a person put into its folder.
    """
    old = folder.with_name(f".{folder.name}.replaced")
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    # Delete this file after the renaming, so that a run that is killed before the renaming can be resumed.
    (folder / JOB_FILE).unlink()
    if old.exists():
        for path in old.iterdir():
            if not os.path.lexists(folder / path.name):
                path.rename(folder / path.name)
        shutil.rmtree(old)


def _mistake(error: OSError, line: str) -> UserError | None:
    """Return a `UserError` for an `OSError` that the user can fix, or None.

    If a file of the run is missing, somebody removed it during the run.
    """
    partial = partial_folder(Path(RunJob.from_json(line).folder))
    mistake = from_os_error(error)
    if error.errno == errno.ENOENT and partial.parent.is_dir():
        if (partial / JOB_FILE).exists():
            return None
        return UserError(f"{partial} was removed during the run: start the run again.")
    if mistake is not None and (partial / CHECKPOINT).is_file():
        return UserError(
            f"{mistake} Then run the same command with --resume (RESUME=1), which continues from {partial}."
        )
    return mistake


if __name__ == "__main__":
    sys.exit(serve(lambda line, reporter: make_run(RunJob.from_json(line), reporter), _mistake))
