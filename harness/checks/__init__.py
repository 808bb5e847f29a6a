"""One property of sound training a module: what it measures, how to read it, and what it can find.

A check `x` is `x.py`, whose docstring is its documentation and whose `measure(subject)` returns a `Finding`, and
`x.toml`, which holds its question and the closed set of its outcomes. To add a check, add these two files: nothing else
lists them. What checks share lies in `core/`.

In a test of your own project, `assert_sound(Training(model, optimizer, loss_fn, loader))` makes them of your training.
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
# Torch takes a second or two to import, and the child is a program of its own, which nothing may import before it runs.
_WHEN_ASKED = {"NotChecked": "assertion", "assert_sound": "assertion", "Training": "training", "run_checks": "child"}


def __getattr__(name: str) -> Any:
    """Import some names when they are asked for."""
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"harness.checks.core.{_WHEN_ASKED[name]}"), name)
