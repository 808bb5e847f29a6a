"""Store and list the attempts at an exercise.

Each `verify` of a changed experiment stores an attempt in `work/<id>/attempts/<number>/`: the experiment, its log, and
the criteria that the run meets. Attempts are never deleted; if a student starts over, they are moved to another folder.
"""

import difflib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from harness.errors import UserError
from harness.files import write_whole
from harness.formats.toml_file import StrictModel
from harness.run.files import EXPERIMENT, INPUT_SHEET, META, METRICS_LOG, RESULT
from harness.run.metrics_log import Record, read_metrics_log
from harness.student.goal import GoalItem
from harness.workspace.workspace import Workspace, read_source

ATTEMPTS = "attempts"
_JUDGED = "judged.json"
_KEPT = (EXPERIMENT, METRICS_LOG, RESULT, META, INPUT_SHEET)


class _JudgedAttempt(StrictModel):
    format_version: Literal[1] = 1
    criteria: tuple[GoalItem, ...]


@dataclass(frozen=True)
class Attempt:
    """One attempt: its number (from 1), its folder, and its result for each criterion of a fixed run."""

    number: int
    folder: Path
    criteria: tuple[GoalItem, ...]

    @property
    def fixed(self) -> bool:
        """Whether the attempt meets every criterion that a student's machine can judge."""
        return bool(self.criteria) and all(item.reached for item in self.criteria)

    def source(self) -> str:
        """Return the source of the attempt's experiment. Raises `UserError` if it cannot be read."""
        return read_source(self.folder / EXPERIMENT)

    def records(self) -> Sequence[Record]:
        """Return the records in the attempt's log. Raises `UserError` if it cannot be read."""
        return read_metrics_log(self.folder / METRICS_LOG)


def keep_attempt(workspace: Workspace, criteria: Sequence[GoalItem]) -> Attempt:
    """Store the fixed run as an attempt and return the attempt.

    If the experiment did not change, replace the last attempt.
    """
    made = list_attempts(workspace)
    fixed = workspace.run_folder("fixed")
    again = made and made[-1].source() == read_source(fixed / EXPERIMENT)
    number = made[-1].number + (not again) if made else 1
    folder = workspace.folder / ATTEMPTS / f"{number:03}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in _KEPT:
        shutil.copyfile(fixed / name, folder / name)
    judged = _JudgedAttempt(criteria=tuple(criteria))
    write_whole({folder / _JUDGED: judged.model_dump_json(indent=1).encode() + b"\n"}, durable=False)
    return Attempt(number, folder, judged.criteria)


def list_attempts(workspace: Workspace) -> list[Attempt]:
    """Return all attempts, oldest first. Skip incomplete folders, which interrupted commands leave behind."""
    return sorted(_attempts(workspace), key=lambda one: one.number)


def _attempts(workspace: Workspace) -> Iterator[Attempt]:
    for path in (workspace.folder / ATTEMPTS).glob(f"*/{_JUDGED}"):
        try:
            yield Attempt(
                int(path.parent.name), path.parent, _JudgedAttempt.model_validate_json(path.read_bytes()).criteria
            )
        except (ValidationError, ValueError, OSError):
            continue


def find_attempt(workspace: Workspace, number: int) -> Attempt:
    """Return the attempt with this number. Raises `UserError` if it does not exist."""
    made = list_attempts(workspace)
    for attempt in made:
        if attempt.number == number:
            return attempt
    there = (
        f"choose one from 1 to {made[-1].number}" if made else f"{workspace.command('verify')} makes the first attempt"
    )
    raise UserError(f"{workspace.folder} has no attempt {number}: {there}.")


def edit_of(before: str, after: str, names: tuple[str, str] = ("broken", "yours")) -> list[str]:
    """Return the lines of a unified diff between two experiments."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return list(lines)


def size_of(edit: Sequence[str]) -> str:
    """Return how many lines a diff adds and removes, as "+1 -2"."""
    body = edit[2:]  # the first two lines name the files
    return f"+{sum(line[0] == '+' for line in body)} -{sum(line[0] == '-' for line in body)}"
