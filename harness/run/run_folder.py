"""The folder of a run: its name while it is unfinished, the lock on it, and how it takes its final name."""

import errno
import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

from harness.errors import UserError
from harness.run.settings import RunJob

# It is in the folder of a run until the run is finished; the process that trains holds a lock on it.
JOB_FILE = "job.json"
_FILES_OF_A_RUN = {"metrics.log", "checkpoint.pt", "result.json"}


def partial_folder(folder: Path) -> Path:
    """Return the folder of an unfinished run."""
    return folder.with_name(folder.name + ".partial")


def refuse_foreign_folder(folder: Path) -> None:
    """Raise `UserError` if the folder of a run would replace something that is not a run."""
    if not folder.is_dir():
        if os.path.lexists(folder):
            raise UserError(f"{folder} is a file, and a run needs a folder: choose another name.")
        return
    names = {path.name for path in folder.iterdir()}
    if folder == Path.cwd() or (names and not names & _FILES_OF_A_RUN):
        raise UserError(f"{folder} holds other things than a run: choose a new folder for the run.")


def locked_job_file(partial: Path) -> IO[str]:
    """Return the open and locked job file of an unfinished run, which is made if it is missing.

    The system removes the lock when the process ends, however it ends.
    """
    partial.mkdir(parents=True, exist_ok=True)
    job_file = (partial / JOB_FILE).open("a+", encoding="utf-8")
    try:
        fcntl.flock(job_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        job_file.close()
        raise UserError(f"Another run is using {partial}: wait until it is done, or stop it first.") from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # a file system without locks
            raise
    return job_file


def prepare_partial(job: RunJob, partial: Path, job_file: IO[str]) -> None:
    """Make the folder ready to continue the run, or to start it from the beginning."""
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
            raise UserError(f"{partial} was started with another experiment.py: {remedy}")
        if before.settings != job.settings:
            raise UserError(f"{partial} was started with other settings: give the same, or {remedy}")
    for path in partial.iterdir():
        # A hidden file is one that was being written when the run was killed.
        if path.name.startswith(".") or not (going_on or path.name == JOB_FILE):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if not going_on:
        (partial / "experiment.py").write_text(job.source, encoding="utf-8")
        job_file.truncate(0)
        job_file.write(job.to_json())
        job_file.flush()


def publish(partial: Path, folder: Path) -> None:
    """Give a finished run its name; it replaces an older run, but keeps files that a person put there."""
    old = folder.with_name(f".{folder.name}.replaced")
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    # After the renaming: a run that is killed before it can still be resumed.
    (folder / JOB_FILE).unlink()
    if old.exists():
        for path in old.iterdir():
            if not os.path.lexists(folder / path.name):
                path.rename(folder / path.name)
        shutil.rmtree(old)
