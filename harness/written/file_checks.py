"""`make check` of an answer that is one file: is it there and begun, and then what its kind can be judged by here."""

from harness.errors import UserError
from harness.submission.check_item import CheckItem, failed, passed
from harness.written.file_exercise import DecisionTree, Derivation, stub
from harness.written.file_workspace import FileWorkspace, read_answer


def file_items(workspace: FileWorkspace) -> list[CheckItem]:
    """Judge the file as such; nothing in it is run."""
    try:
        text = read_answer(workspace.answer)
    except UserError as error:
        return [failed("answer: file", str(error), blocks=True)]
    if text == stub(workspace.exercise):
        return [failed("answer: file", f"{workspace.answer} is as it was handed out: write it first.")]
    return [passed("answer: file", f"{workspace.answer} is there, and differs from what was handed out.")]


def run_file_checks(workspace: FileWorkspace) -> list[CheckItem]:
    """Judge all that can be judged before handing in."""
    items = file_items(workspace)
    if any(item.outcome == "failed" for item in items):
        return items
    return [*items, *_items_of_the_kind(workspace)]


def _items_of_the_kind(workspace: FileWorkspace) -> list[CheckItem]:
    match workspace.exercise:
        case Derivation() as exercise:
            from harness.written.derivation.self_check import derivation_items

            return derivation_items(exercise, workspace.answer)
        case DecisionTree():
            from harness.written.decision_tree.self_check import tree_items

            return tree_items(workspace)
    raise NotImplementedError(workspace.exercise.kind)
