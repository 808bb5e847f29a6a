"""`make check` of a decision tree: its form, and what it concludes for the exercises that the student has begun."""

from pathlib import Path

from harness.checks import run_checks
from harness.errors import UserError
from harness.recipe import recipe_ids
from harness.run.settings import RunSettings
from harness.submission.check_run import CheckItem, could_not_judge, failed, passed
from harness.workspace import SETTINGS, open_workspace, read_source
from harness.written.decision_tree import HEALTHY, Tree, parse_tree, walk


def form_item(path: Path, text: str) -> CheckItem:
    """Judge whether the tree can be read, ends, and depends on outcomes."""
    try:
        tree = parse_tree(text, str(path))
    except UserError as error:
        return failed("tree: form", str(error))
    if flaw := tree.flaw():
        return failed("tree: form", f"{path}: {flaw}")
    return passed("tree: form", "Every name exists, every outcome has a step, and there is no loop.")


def walk_items(tree: Tree, work: Path) -> list[CheckItem]:
    """Walk a tree whose form is right with each broken run of the student, and with each edited experiment."""
    items = []
    for recipe in recipe_ids():
        if not (work / recipe / SETTINGS).is_file():
            continue
        found = open_workspace(work, recipe)
        if found.has_run("broken"):
            items.append(_walk(tree, recipe, found.broken_source(), found.settings))
        if found.has_run("broken") and found.edited():
            items.append(_walk(tree, recipe, read_source(found.experiment), found.settings, found.experiment))
    message = f"{work} has no broken run to walk the tree with: make exercise BREAK=huge_lr makes one."
    return items or [could_not_judge("walk", message)]


def _walk(
    tree: Tree, recipe: str, source: str, settings: RunSettings, edited: Path | None = None
) -> CheckItem:
    """Walk with an experiment; `edited` is the student's own, in which the bug may or may not be fixed."""
    item = f"walk: {recipe}, edited" if edited else f"walk: {recipe}"

    def outcome_of(check: str) -> str:
        return run_checks(source, settings, [check], source_path=edited, bar=True)[check].outcome

    try:
        walked = walk(tree, outcome_of)
    except UserError as error:
        return could_not_judge(item, str(error))
    unit = "minute" if walked.minutes == 1 else "minutes"
    said = f"{walked.path} → concludes {walked.conclusion}, after {walked.minutes:g} {unit}."
    if walked.conclusion == (HEALTHY if edited else recipe):
        return passed(item, said)
    if edited:
        return could_not_judge(item, f"{said} Did you fix {edited}, and change nothing else?")
    return failed(item, said)
