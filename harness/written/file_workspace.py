"""A student's folder for an exercise whose answer is one file: `work/<id>/`, without runs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import UserError, naming
from harness.recipe import EXERCISES
from harness.workspace import SETTINGS, SUBMITTED, make_command, write_new, write_where_missing
from harness.written.file_exercise import FileExercise, stub

PROMPT = "PROMPT.md"
# As the experiments: the longest answer that anybody wrote has 4 KiB.
ANSWER_BYTES = 64 * 1024
FileState = Literal["not started", "begun", "submitted"]


@dataclass(frozen=True)
class FileWorkspace:
    """The folder `work/<id>/`. Nothing overwrites the file that the student writes."""

    folder: Path
    exercise: FileExercise

    @property
    def answer(self) -> Path:
        """The file that the student writes."""
        return self.folder / self.exercise.file

    def command(self, verb: str, more: str = "") -> str:
        """Return the `make` command of a verb for this workspace, wherever it lies."""
        return make_command(verb, self.folder, more)

    def state(self) -> FileState:
        """Say how far the student is; what was submitted stays submitted."""
        if not (self.folder / SETTINGS).is_file():
            return "not started"
        return "submitted" if (self.folder / SUBMITTED).is_file() else "begun"


def start_file_exercise(exercise: FileExercise, work: Path) -> tuple[FileWorkspace, bool]:
    """Make `work/<id>/`, or complete one that is there; return it and whether it is new.

    The note of what it is comes last: a workspace whose making was interrupted is made to the end the next time.
    Raises `OSError` where it cannot be written.
    """
    workspace = FileWorkspace(work / exercise.id, exercise)
    made = workspace.state() == "not started"
    with naming(workspace.folder):
        workspace.folder.mkdir(parents=True, exist_ok=True)
        write_where_missing(workspace.answer, stub(exercise))
        if not (workspace.folder / PROMPT).exists():
            write_new(workspace.folder / PROMPT, prompt_text(exercise))
        record = {"format_version": 1, "exercise": exercise.id, "kind": exercise.kind}
        write_where_missing(workspace.folder / SETTINGS, json.dumps(record, indent=1) + "\n")
    return workspace, made


def open_file_workspace(exercise: FileExercise, work: Path) -> FileWorkspace:
    """Return an existing workspace. Raises `UserError` if there is none."""
    workspace = FileWorkspace(work / exercise.id, exercise)
    if workspace.state() == "not started":
        raise UserError(
            f"There is no workspace {workspace.folder}: make exercise BREAK={exercise.id} makes it."
        )
    return workspace


def prompt_text(exercise: FileExercise) -> str:
    """Return what a student is asked: the exercise's own text, then the steps, which all of them share."""
    story = (EXERCISES / exercise.id / PROMPT).read_text(encoding="utf-8")
    steps = (Path(__file__).parent.parent / "templates" / "file_steps.md").read_text(encoding="utf-8")
    return story + steps.replace("{exercise}", exercise.id).replace("{file}", exercise.file)


def read_answer(path: Path) -> str:
    """Return the text of an answer. Raises `UserError` where it is missing, too large, or not UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(ANSWER_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"There is no {path}: put the file back, or make the exercise again.") from None
    if len(data) > ANSWER_BYTES:
        raise UserError(f"{path} is larger than {ANSWER_BYTES // 1024} KiB: shorten it.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
