"""Read the declaration of a check: the docstring of its module, and the TOML file beside it."""

import ast
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.checks.core.finding import Check, LogLimit, Outcome


def read_check(folder: Path, name: str, of_scripts: Mapping[str, Check]) -> Check:
    """Return the check that `name`.py and `name`.toml in a folder declare.

    of_scripts: checks of scripts by name; if one has this name, the check has its outcomes for scripts, too.
    """
    # Parse the module instead of importing it, because the import needs torch and takes seconds, and every command
    # lists the checks.
    documentation = ast.get_docstring(ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))) or ""
    table = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    outcomes = tuple(map(_outcome, table.pop("outcome")))
    known = {outcome.id for outcome in outcomes}
    other = of_scripts[name].outcomes if name in of_scripts else ()
    further = tuple(outcome for outcome in other if outcome.id not in known)
    return Check(name, documentation, outcomes=outcomes, of_scripts=further, **table)


def _outcome(table: dict[str, Any]) -> Outcome:
    in_log = LogLimit(**table.pop("in_log")) if "in_log" in table else None
    return Outcome(**{**table, "next": tuple(table.get("next", ()))}, in_log=in_log)
