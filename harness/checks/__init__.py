"""Checks: each module in this package measures one property of a correct training and returns a `Finding`.

A check `x` consists of two files. In `x.py`, the docstring describes the check for users, and `measure(subject)`
returns a `Finding`. `x.toml` contains the question that the check answers and all its possible outcomes. To add a
check, add these two files; there is no list of checks to edit. `core/` contains the code that the checks share.

They measure experiments. For any other training, use the library `trainwreck`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from harness.checks.core.finding import Check, Finding, LogLimit, Outcome
from harness.checks.core.library import check_names, checks_for, every_check, load_check, make_check, mechanism_checks
from harness.checks.core.of_scripts import script_checks

if TYPE_CHECKING:
    from harness.checks.core.child import run_checks

__all__ = [
    "Check",
    "Finding",
    "LogLimit",
    "Outcome",
    "check_names",
    "checks_for",
    "every_check",
    "load_check",
    "make_check",
    "mechanism_checks",
    "run_checks",
    "script_checks",
]


def __getattr__(name: str) -> Any:
    """Import `run_checks` when it is first used: Python warns if the module is imported before it runs as a script."""
    if name != "run_checks":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module("harness.checks.core.child").run_checks
