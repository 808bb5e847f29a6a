"""The files of a reproducer that are read again before any experiment is: the settings of the run, and what fails."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.run.settings import RunSettings

EXPERIMENT, JOB, PROVENANCE, README = "experiment.py", "job.json", "provenance.json", "README.md"
BEFORE, EXPECTED = "before.log", "expected.log"


@dataclass(frozen=True)
class Failure:
    """The step after which a run shows its failure, in which quantity of the log, and its value there.

    `sudden` is False where nothing stood out and the step is one that was asked for, or the last.
    """

    step: int
    quantity: str
    value: float | None
    what: str
    sudden: bool = True


def read_settings(folder: Path) -> RunSettings:
    """Return the settings of the run. Raises `UserError` for a folder that is no reproducer."""
    return RunSettings(**_job(folder)["settings"])


def read_failure(folder: Path) -> Failure:
    """Return what the reproducer is to show. Raises `UserError` as `read_settings`."""
    fields = dict(_job(folder)["failure"])
    value = fields.pop("value")
    return Failure(**fields, value=None if value is None else float(value))


def read_expected(folder: Path) -> str:
    """Return the recorded lines of the log. Raises `UserError` where they are missing."""
    try:
        return (folder / EXPECTED).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{folder / EXPECTED} cannot be read: unpack the reproducer anew.") from None


def _job(folder: Path) -> dict[str, Any]:
    try:
        job = json.loads((folder / JOB).read_text(encoding="utf-8"))
        if job["format_version"] != 1:
            raise ValueError
        RunSettings(**job["settings"])
        Failure(**job["failure"])
    except FileNotFoundError:
        raise UserError(
            f"{folder} holds no {JOB}: name the folder that the reproducer was unpacked to."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{folder / JOB} is no job of a reproducer: unpack it anew.") from None
    found: dict[str, Any] = job
    return found
