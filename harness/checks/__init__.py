"""One property of sound training a module: what it measures, how to read it, and what it can find.

A check is a module of this folder. Its docstring is its documentation, `CHECK` declares its question and its
closed set of outcomes, and `measure(subject)` returns a `Finding`. To add a check, add a file:
nothing else lists them. What checks share lies in `core/`, their commands in `cli/`.

In a test of your own project, `assert_sound(Training(model, optimizer, loss_fn, loader))` makes them of your training.
"""

import ast
import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.checks.core import finding
from harness.checks.core.finding import Check, Finding, Limit, Outcome
from harness.errors import UserError

if TYPE_CHECKING:  # measuring needs torch, which takes a second or two to import
    from harness.checks.core.assertion import NotChecked, assert_sound
    from harness.checks.core.subject import Subject
    from harness.checks.core.training import Training
    from harness.run.settings import RunSettings

__all__ = [
    "Check",
    "Finding",
    "Limit",
    "NotChecked",
    "Outcome",
    "Training",
    "assert_sound",
    "check_names",
    "load_check",
    "make_check",
    "mechanism_checks",
    "run_checks",
]
_NEED_TORCH = {"NotChecked": "assertion", "assert_sound": "assertion", "Training": "training"}

_FOLDER = Path(__file__).parent


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is asked for."""
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harness.checks.core.{_NEED_TORCH[name]}"), name)


@cache
def check_names() -> tuple[str, ...]:
    """Return the names of all checks, in the order in which to make them."""
    names = [path.stem for path in _FOLDER.glob("*.py") if not path.stem.startswith("_")]
    return tuple(sorted(names, key=lambda name: (_load(name).order, name)))


@cache
def mechanism_checks() -> tuple[str, ...]:
    """Return the checks that measure a mechanism directly, so that a fix can be judged by them."""
    return tuple(name for name in check_names() if load_check(name).mechanism)


def load_check(name: str) -> Check:
    """Return what a check declares. Raises `UserError` for an unknown name."""
    if name not in check_names():
        from harness.recipes.recipe import suggestion

        raise UserError(f"There is no check {name!r}: {suggestion(name, check_names())}")
    return _load(name)


@cache
def _load(name: str) -> Check:
    # Run the CHECK statement alone. Importing the module would import torch, which takes seconds, and every command
    # lists the checks; imports inside of each function would cost more lines than this.
    tree = ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    (statement,) = (
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CHECK"
    )
    found: dict[str, Any] = dict(vars(finding))
    exec(compile(ast.Module([statement], []), name, "exec"), found)  # noqa: S102 - our own file
    declared: Check = found["CHECK"]
    return replace(declared, name=name, documentation=ast.get_docstring(tree) or "")


def make_check(subject: "Subject", name: str) -> Finding:
    """Make one check in this process. Raises `UserError` for what the experiment does wrong meanwhile."""
    check = load_check(name)
    found: Finding = importlib.import_module(f"harness.checks.{name}").measure(subject)
    check.outcome(found.outcome)  # a word outside the closed set is a fault of the check
    return found


def run_checks(
    source: str,
    settings: "RunSettings",
    names: Sequence[str] | None = None,
    *,
    source_path: Path | None = None,
    bar: bool = False,
) -> dict[str, Finding]:
    """Make checks, by default all of them, in a process of their own with the numerics of a run.

    Outcomes are the same on every machine of one platform class. Each check starts from the seed anew, so none changes
    what another finds. `source_path` is the file that errors name, `bar` shows the progress on a terminal.

    Raises `UserError` for an unknown check and for a mistake in the experiment, `Stopped` after Ctrl-C, and
    `ChildFault` for a fault of ours.
    """
    from harness.checks.core.child import start

    wanted = [load_check(name).name for name in (check_names() if names is None else names)]
    (found,) = start([(source, settings)], wanted, source_path, bar=bar)
    return found
