"""Find checks, load their declarations from TOML files, and run one check."""

import ast
import importlib
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.checks.core.finding import Check, Finding, LogLimit, Outcome
from harness.errors import UserError, suggestion

if TYPE_CHECKING:  # not at run time, because importing torch takes a second or two
    from harness.checks.core.subject import Subject

_FOLDER = Path(__file__).parents[1]


@cache
def check_names() -> tuple[str, ...]:
    """Return the names of all checks, in the order in which triage runs them."""
    names = [path.stem for path in _FOLDER.glob("*.toml")]
    return tuple(sorted(names, key=lambda name: (_load(name).order, name)))


@cache
def mechanism_checks() -> tuple[str, ...]:
    """Return the names of the checks that can see a fault itself and therefore judge a fix."""
    return tuple(name for name in check_names() if load_check(name).mechanism)


def load_check(name: str) -> Check:
    """Return the check with this name. Raises `UserError` for an unknown name."""
    if name not in check_names():
        raise UserError(f"There is no check {name!r}: {suggestion(name, check_names())}")
    return _load(name)


@cache
def _load(name: str) -> Check:
    # Parse the module instead of importing it, because the import needs torch and takes seconds, and every command
    # lists the checks.
    documentation = ast.get_docstring(ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    outcomes = tuple(map(_outcome, table.pop("outcome")))
    return Check(name, documentation, outcomes=outcomes, **table)


def _outcome(table: dict[str, Any]) -> Outcome:
    in_log = LogLimit(**table.pop("in_log")) if "in_log" in table else None
    return Outcome(**{**table, "next": tuple(table.get("next", ()))}, in_log=in_log)


def make_check(subject: "Subject", name: str) -> Finding:
    """Run one check in this process and return its finding. Raises `UserError` for a mistake in the experiment."""
    check = load_check(name)
    found: Finding = importlib.import_module(f"harness.checks.{name}").measure(subject)
    check.outcome(found.outcome)  # raises for an undeclared outcome, which is a bug of the check
    return found
