"""What `make check` says of a decision tree: its form, and where it leads for the exercises in the same folder."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from harness.errors import UserError
from harness.recipe import recipe_ids
from harness.submission.check_item import CheckItem, could_not_judge, failed, passed
from harness.workspace import SETTINGS, Workspace, open_workspace, read_source
from harness.written.decision_tree.outcomes import Outcomes
from harness.written.decision_tree.shape import no_tree, unreachable
from harness.written.decision_tree.tree import HEALTHY, Tree, parse_tree
from harness.written.decision_tree.walk import Walked, walk
from harness.written.file_workspace import FileWorkspace, read_answer


def tree_items(workspace: FileWorkspace) -> list[CheckItem]:
    """Judge a tree by its form, then walk it with every broken experiment, and every mended one, of the student's."""
    path = workspace.answer
    try:
        tree = parse_tree(read_answer(path), str(path))
    except UserError as error:
        return [failed("tree: form", str(error))]
    items = [passed("tree: form", "Every outcome has a step, and every name is one that is known.")]
    if reason := no_tree(tree):
        return [*items, failed("tree: evidence", f"{path}: {reason}")]
    items.append(passed("tree: evidence", "It has no loop, and concludes by what the checks find."))
    if names := unreachable(tree):
        items.append(
            failed("tree: use", f"{path}: no outcome leads to {', '.join(names)}: go there, or remove it.")
        )
    walks = list(_walks(tree, workspace))
    if not walks:
        walks.append(
            could_not_judge(
                "walk",
                f"There is no broken run beside {workspace.folder} to walk it with:"
                " make exercise BREAK=huge_lr makes one.",
            )
        )
    return [*items, *walks]


def _walks(tree: Tree, workspace: FileWorkspace) -> Iterator[CheckItem]:
    work = workspace.folder.parent
    outcomes = Outcomes(workspace.folder)
    for recipe in recipe_ids():
        if not (work / recipe / SETTINGS).is_file():
            continue
        found = open_workspace(work, recipe)
        if not found.has_run("broken"):
            continue
        ask = partial(outcomes.of, found.broken_source(), found.settings)
        walked = walk(tree, ask)
        right = walked.conclusion == recipe
        yield (passed if right else failed)(f"walk: {recipe}", _told(walked))
        if found.edited():
            yield _mended(tree, found, outcomes)


def _mended(tree: Tree, found: Workspace, outcomes: Outcomes) -> CheckItem:
    """Walk with the edited experiment, which may be mended or not."""
    item = f"walk: {found.recipe}, edited"
    path: Path = found.experiment
    try:
        walked = walk(tree, partial(outcomes.of, read_source(path), found.settings, source_path=path))
    except UserError as error:
        return could_not_judge(item, str(error))
    if walked.conclusion == HEALTHY:
        return passed(item, _told(walked))
    return could_not_judge(item, f"{_told(walked)} Is {path} mended, and nothing else changed?")


def _told(walked: Walked) -> str:
    unit = "minute" if walked.minutes == 1 else "minutes"
    return f"{walked.path} → concludes {walked.conclusion}, after {walked.minutes:g} {unit}."
