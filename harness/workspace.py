"""A student's folder for one exercise: what is in it, whose it is, and how far it has come."""

import dataclasses
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import UserError
from harness.settings import RunSettings

EXPERIMENT = "experiment.py"
REPORT = "report.md"
SETTINGS = "workspace.json"
SUBMITTED = "submitted.json"
RESULT = "result.json"
State = Literal["not started", "broken run done", "fixed run done", "submitted"]

REPORT_TEMPLATE = """\
---
root_cause_layer:
evidence:
  - {run: broken, signal: , step: , value: }
  - {run: fixed, signal: val_accuracy, epoch: , value: }
---

# Symptom

# Root cause

# Fix

# Verification
"""


@dataclass(frozen=True)
class Workspace:
    """The folder `work/<recipe>/`. `experiment.py` and `report.md` are the student's: nothing overwrites them."""

    folder: Path
    recipe: str
    settings: RunSettings

    @property
    def experiment(self) -> Path:
        """The file that the student edits."""
        return self.folder / EXPERIMENT

    @property
    def report(self) -> Path:
        """The student's report."""
        return self.folder / REPORT

    def run_folder(self, run: str) -> Path:
        """Return the folder of the finished run `broken` or `fixed`."""
        return self.folder / "runs" / run

    def has_run(self, run: str) -> bool:
        """Say whether that run is finished."""
        return (self.run_folder(run) / RESULT).is_file()

    def broken_source(self) -> str:
        """Return the experiment as it was handed out."""
        return (self.run_folder("broken") / EXPERIMENT).read_text(encoding="utf-8")

    def edited(self) -> bool:
        """Say whether the student has changed the experiment since it was handed out."""
        return self.experiment.read_text(encoding="utf-8") != self.broken_source()

    def state(self) -> State:
        """Say how far the student is; a fixed run counts for the experiment as it now stands."""
        if not self.has_run("broken"):
            return "not started"
        if (self.folder / SUBMITTED).is_file():
            return "submitted"
        return "fixed run done" if self.has_run("fixed") else "broken run done"


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet, whole or not at all."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    try:
        os.link(scratch, path)  # unlike a rename, it fails where the name is taken
    finally:
        scratch.unlink()


def create_workspace(work: Path, recipe: str, source: str, settings: RunSettings) -> Workspace:
    """Make `work/<recipe>/`, or complete one that is there; the student's own files are left as they are.

    Raises `UserError` if the workspace was made with other settings.
    """
    folder = work / recipe
    if (folder / SETTINGS).is_file():
        return open_workspace(work, recipe, settings)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((EXPERIMENT, source), (REPORT, REPORT_TEMPLATE)):
        if not (folder / name).exists():
            write_new(folder / name, text)
    record = {"format_version": 1, "recipe": recipe, "settings": dataclasses.asdict(settings)}
    write_new(folder / SETTINGS, json.dumps(record, indent=1) + "\n")
    return Workspace(folder, recipe, settings)


def open_workspace(work: Path, recipe: str, asked: RunSettings | None = None) -> Workspace:
    """Return an existing workspace.

    Raises `UserError` if there is none, if it cannot be read, or if `asked` differs from what it was made with.
    """
    folder = work / recipe
    path = folder / SETTINGS
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        settings = RunSettings(**record["settings"])
    except FileNotFoundError:
        raise UserError(f"There is no workspace {folder}: make exercise BREAK={recipe} makes it.") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} cannot be read: move your experiment.py and report.md out of {folder}, "
                        f"then make clean-work BREAK={recipe} and make exercise BREAK={recipe}.") from None
    if asked is not None and asked != settings:
        differences = ", ".join(
            f"{field.name} {getattr(settings, field.name)} (asked for {getattr(asked, field.name)})"
            for field in dataclasses.fields(settings)
            if getattr(settings, field.name) != getattr(asked, field.name)
        )
        raise UserError(
            f"{folder} was made with {differences}: keep to that, name another folder with WORK=, "
            f"or start over with make clean-work BREAK={recipe}."
        )
    return Workspace(folder, recipe, settings)


def remove_workspace(work: Path, recipe: str) -> Path:
    """Move the student's own files into `work/.removed/<recipe>-<n>/` and delete the rest; return that folder."""
    folder = work / recipe
    if not folder.is_dir():
        raise UserError(f"There is no workspace {folder}: nothing to remove.")
    kept = work / ".removed"
    number = 1
    while (kept / f"{recipe}-{number}").exists():
        number += 1
    target = kept / f"{recipe}-{number}"
    target.mkdir(parents=True)
    for name in (EXPERIMENT, REPORT):
        if (folder / name).exists():
            (folder / name).rename(target / name)
    shutil.rmtree(folder)
    return target


def read_source(path: Path) -> str:
    """Return the text of an experiment. Raises `UserError` if there is none, or if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no {path}: make the exercise again, or put the file back.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None


def source_hash(source: str) -> str:
    """Return the SHA-256 of a source text, in hexadecimal digits."""
    return hashlib.sha256(source.encode()).hexdigest()
