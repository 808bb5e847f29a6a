"""`make check` of a decision tree: its form, and what it concludes for the exercises that the student has begun."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from harness.checks import run_checks
from harness.errors import UserError
from harness.files import write_whole
from harness.recipe import recipe_ids
from harness.run.provenance import harness_hash
from harness.run.settings import RunSettings
from harness.submission.check_run import CheckItem, could_not_judge, failed, passed
from harness.workspace import OUTCOMES, SETTINGS, Workspace, open_workspace, read_source
from harness.written.decision_tree import HEALTHY, Tree, Walked, parse_tree, walk
from harness.written.workspace import FileWorkspace, read_answer


def form_item(path: Path, text: str) -> CheckItem:
    """Judge whether the tree can be read, ends, and depends on outcomes."""
    try:
        tree = parse_tree(text, str(path))
    except UserError as error:
        return failed("tree: form", str(error))
    if flaw := tree.flaw():
        return failed("tree: form", f"{path}: {flaw}")
    return passed("tree: form", "Every name exists, every outcome has a step, and there is no loop.")


def tree_items(workspace: FileWorkspace) -> list[CheckItem]:
    """Walk a tree whose form is right with each broken run of the student, and with each edited experiment."""
    tree = parse_tree(read_answer(workspace.answer), str(workspace.answer))
    work = workspace.folder.parent
    message = f"{work} has no broken run to walk the tree with: make exercise BREAK=huge_lr makes one."
    return list(_walks(tree, workspace)) or [could_not_judge("walk", message)]


def _walks(tree: Tree, workspace: FileWorkspace) -> Iterator[CheckItem]:
    work, outcomes = workspace.folder.parent, CheckedOutcomes(workspace.folder)
    for recipe in recipe_ids():
        if not (work / recipe / SETTINGS).is_file():
            continue
        found = open_workspace(work, recipe)
        if not found.has_run("broken"):
            continue
        walked = walk(tree, partial(outcomes.of, found.broken_source(), found.settings))
        right = walked.conclusion == recipe
        yield (passed if right else failed)(f"walk: {recipe}", _described(walked))
        if found.edited():
            yield _edited(tree, found, outcomes)


def _edited(tree: Tree, found: Workspace, outcomes: "CheckedOutcomes") -> CheckItem:
    """Walk with the edited experiment; the bug in it may or may not be fixed."""
    item, path = f"walk: {found.recipe}, edited", found.experiment
    try:
        walked = walk(tree, partial(outcomes.of, read_source(path), found.settings, source_path=path))
    except UserError as error:
        return could_not_judge(item, str(error))
    if walked.conclusion == HEALTHY:
        return passed(item, _described(walked))
    return could_not_judge(item, f"{_described(walked)} Did you fix {path}, and change nothing else?")


def _described(walked: Walked) -> str:
    unit = "minute" if walked.minutes == 1 else "minutes"
    return f"{walked.path} → concludes {walked.conclusion}, after {walked.minutes:g} {unit}."


class CheckedOutcomes:
    """Runs checks in a child process, and keeps their outcomes in the folder of the tree.

    An outcome belongs to the experiment, its settings and the harness: if one of them changes, the check runs again.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / OUTCOMES
        self._known: dict[str, str] = {}
        with suppress(OSError, ValueError, TypeError, RecursionError):  # a damaged file counts as empty
            self._known = dict(json.loads(self._path.read_bytes()))

    def of(self, source: str, settings: RunSettings, check: str, source_path: Path | None = None) -> str:
        """Return the outcome of a check. Raises what `run_checks` raises: `UserError`, `Stopped`, `ChildFault`."""
        decides = json.dumps([source, asdict(settings), harness_hash(), check])
        key = hashlib.sha256(decides.encode()).hexdigest()
        if key not in self._known:
            found = run_checks(source, settings, [check], source_path=source_path, bar=True)
            self._known[key] = found[check].outcome
            write_whole({self._path: json.dumps(self._known, indent=1).encode()})
        return self._known[key]
