"""Checks: each module in this package measures one property of a correct training and returns a `Finding`.

A check `x` consists of two files. In `x.py`, the docstring describes the check for users, and `measure(subject)`
returns a `Finding`. `x.toml` contains the question that the check answers and all its possible outcomes. To add a
check, add these two files; there is no list of checks to edit. `core/` contains the code that the checks share.

To check your own project in a test, call `assert_sound(Training(model, optimizer, loss_fn, loader))`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from harness.checks.core.finding import Check, Finding, LogLimit, Outcome
from harness.checks.core.library import check_names, load_check, make_check, mechanism_checks

if TYPE_CHECKING:
    from harness.checks.core.assertion import NotChecked, assert_sound
    from harness.checks.core.child import run_checks
    from harness.checks.core.training import Training

__all__ = [
    "Check",
    "Finding",
    "LogLimit",
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
# Import these names only when they are used: importing torch takes a second or two, and Python warns if the module
# `child` is imported before it runs as a script.
_WHEN_ASKED = {"NotChecked": "assertion", "assert_sound": "assertion", "Training": "training", "run_checks": "child"}


def __getattr__(name: str) -> Any:
    """Import a name from `_WHEN_ASKED` when it is first used, and return the imported object."""
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harness.checks.core.{_WHEN_ASKED[name]}"), name)
