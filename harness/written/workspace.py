"""The workspace of an exercise in which students write a file: the folder `work/<id>/`, and its `make check`."""

import json
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError, name_place
from harness.files import read_text
from harness.submission.check_run import CheckItem, failed_item, passed_item
from harness.submission.limits import ANSWER_BYTES
from harness.submission.program import Unparsable, parse_experiment
from harness.workspace.progress import note_begin, progress_of
from harness.workspace.workspace import (
    PROMPT,
    SETTINGS,
    State,
    make_command,
    make_folder,
    prompt_text,
    write_missing,
    write_where_missing,
)
from harness.written.exercise import DecisionTree, FileExercise, FunctionExercise, stub


@dataclass(frozen=True)
class FileWorkspace:
    """The folder `work/<id>/`. No method overwrites the file that the student writes."""

    folder: Path
    exercise: FileExercise

    @property
    def answer(self) -> Path:
        """The file that the student writes."""
        return self.folder / self.exercise.file

    def command(self, verb: str, more: str = "") -> str:
        """Return a `make` command for this workspace. `verb` is its target, such as "check"."""
        return make_command(verb, self.folder, more)

    def restore(self) -> list[str]:
        """Restore the student's file and the task if they are missing. Return the names of the restored files."""
        task = prompt_text(self.exercise.id, self.exercise.file, self.folder.parent)
        return write_missing(self.folder, {self.exercise.file: stub(self.exercise), PROMPT: task})

    def exists(self) -> bool:
        """Return whether the workspace exists."""
        return (self.folder / SETTINGS).is_file()

    def state(self) -> State:
        """Return the state of the exercise. The state "handed in" does not change any more."""
        if progress_of(self.folder).handed_in is not None:
            return "handed in"
        return "begun" if self.exists() else "not started"


def start_file_exercise(exercise: FileExercise, work: Path) -> tuple[FileWorkspace, bool]:
    """Create `work/<id>/`, or complete it after an interruption. Return the workspace and whether it is new.

    A complete workspace does not change; `FileWorkspace.restore` restores files that are missing later. The settings
    file is written last. So if it is missing, the next call completes the workspace. Raises `OSError` if the folder
    cannot be written.
    """
    workspace = FileWorkspace(work / exercise.id, exercise)
    made = not workspace.exists()
    with name_place(workspace.folder):
        if not made:
            return workspace, False
        make_folder(workspace.folder)
        workspace.restore()
        record = {"format_version": 1, "exercise": exercise.id, "kind": exercise.kind}
        write_where_missing(workspace.folder / SETTINGS, json.dumps(record, indent=1) + "\n")
        note_begin(workspace.folder)
    return workspace, True


def open_file_workspace(exercise: FileExercise, work: Path) -> FileWorkspace:
    """Return an existing workspace. Raises `UserError` if it does not exist."""
    workspace = FileWorkspace(work / exercise.id, exercise)
    if not workspace.exists():
        raise UserError(f"There is no workspace {workspace.folder}: {workspace.command('exercise')} makes it.")
    return workspace


def read_answer(path: Path) -> str:
    """Return the text of an answer. Raises `UserError` if it is missing, too large, or not UTF-8."""
    missing = f"put the file back, or {make_command('exercise', path.parent)} writes the original one again"
    return read_text(path, ANSWER_BYTES, missing=missing, too_large="shorten it")


def file_items(workspace: FileWorkspace) -> list[CheckItem]:
    """Check that the file exists, was changed, can be parsed, and imports only allowed modules, without running it.

    `make submit` refuses a file that cannot be read, and only warns about other problems.
    """
    try:
        text = read_answer(workspace.answer)
    except UserError as error:
        return [failed_item("answer: file", str(error), blocks=True)]
    if text == stub(workspace.exercise):
        return [failed_item("answer: file", f"{workspace.answer} is still the original file: write your answer.")]
    items = [passed_item("answer: file", f"{workspace.answer} exists and differs from the original file.")]
    if isinstance(workspace.exercise, DecisionTree):
        return [*items, _form_item(workspace.exercise, workspace.answer, text)]
    try:
        parse_experiment(text)
    except Unparsable as error:
        message = f"{workspace.answer} cannot be parsed: {error}: fix this error."
        return [*items, failed_item("answer: syntax", message, blocks=True)]
    from harness.written.comparison import import_item

    foreign = import_item(workspace.answer, text)
    return [*items, foreign] if foreign else items


def check_file(workspace: FileWorkspace) -> list[CheckItem]:
    """Return the check results that `make check` prints for an answer."""
    items = file_items(workspace)
    if any(item.outcome == "failed" for item in items):
        return items
    if not isinstance(workspace.exercise, FunctionExercise):
        return items
    from harness.written.comparison import check_answer
    from harness.written.expected import read_reference

    text, reference = read_answer(workspace.answer), read_reference(workspace.exercise)
    return [*items, *check_answer(workspace.exercise, workspace.answer, text, reference)]


def _form_item(exercise: DecisionTree, path: Path, text: str) -> CheckItem:
    """Check that a tree is valid, has no loop, and depends on the outcomes of its checks."""
    from harness.written.decision_tree import parse_tree

    try:
        flaw = parse_tree(text, exercise.experiments, str(path)).flaw()
    except UserError as error:
        return failed_item("tree: form", str(error))
    if flaw:
        return failed_item("tree: form", f"{path}: {flaw}")
    return passed_item("tree: form", "Every name exists, every outcome has a step, and there is no loop.")
