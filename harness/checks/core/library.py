"""Find checks, load their declarations, and run them on an experiment with functions or on a script."""

import ast
import importlib
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.checks.core.finding import Check, Finding, LogLimit, Outcome
from harness.checks.core.of_scripts import script_checks, watch
from harness.errors import UserError, suggestion
from harness.scripts.form import is_script

if TYPE_CHECKING:  # not at run time, because importing torch takes a second or two
    from harness.checks.core.subject import Subject
    from harness.run.settings import RunSettings
    from harness.scripts.script import ScriptSubject

_FOLDER = Path(__file__).parents[1]


@cache
def check_names() -> tuple[str, ...]:
    """Return the names of all checks, in the order in which triage runs them."""
    names = [path.stem for path in _FOLDER.glob("*.toml")]
    return tuple(sorted(names, key=lambda name: (_load(name).order, name)))


@cache
def every_check() -> tuple[str, ...]:
    """Return the names of all checks: those of experiments with functions, then further ones of scripts."""
    return tuple(dict.fromkeys((*check_names(), *script_checks())))


def checks_for(source: str) -> tuple[str, ...]:
    """Return the names of the checks that can measure the experiment with this source."""
    return tuple(script_checks()) if is_script(source) else check_names()


def mechanism_checks(source: str) -> tuple[str, ...]:
    """Return the names of the checks for this source that can see a fault itself and therefore judge a fix."""
    return tuple(name for name in checks_for(source) if load_check(name).mechanism)


def load_check(name: str) -> Check:
    """Return the check with this name. Raises `UserError` for an unknown name."""
    if name in check_names():
        return _load(name)
    if name in script_checks():
        return script_checks()[name]
    raise UserError(f"There is no check {name!r}: {suggestion(name, every_check())}")


def load_check_for(name: str, source: str) -> Check:
    """Return the check with this name, with the outcomes that it can have for an experiment with this source."""
    return script_checks()[name] if is_script(source) and name in script_checks() else load_check(name)


@cache
def _load(name: str) -> Check:
    # Parse the module instead of importing it, because the import needs torch and takes seconds, and every command
    # lists the checks.
    documentation = ast.get_docstring(ast.parse((_FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    table = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    outcomes = tuple(map(_outcome, table.pop("outcome")))
    known = {outcome.id for outcome in outcomes}
    other = script_checks()[name].outcomes if name in script_checks() else ()
    of_scripts = tuple(outcome for outcome in other if outcome.id not in known)
    return Check(name, documentation, outcomes=outcomes, of_scripts=of_scripts, **table)


def _outcome(table: dict[str, Any]) -> Outcome:
    in_log = LogLimit(**table.pop("in_log")) if "in_log" in table else None
    return Outcome(**{**table, "next": tuple(table.get("next", ()))}, in_log=in_log)


@contextmanager
def open_subject(
    path: Path, source: str, settings: "RunSettings", cache: Path | None = None
) -> "Iterator[Subject | ScriptSubject]":
    """Yield what checks measure: an experiment or a script with its data. `cache` is as in `load_dataset`.

    Raises `UserError` if the data is missing.
    """
    if is_script(source):
        from harness.data.folder import load_folder
        from harness.scripts.script import ScriptSubject

        with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
            data = load_folder(settings.dataset, cache).write(Path(folder).resolve())
            yield ScriptSubject(path, source, settings, data)
        return
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset

    yield Subject(path, source, settings, load_dataset(settings.dataset, cache=cache))


def make_checks(subject: "Subject | ScriptSubject", names: Sequence[str]) -> "Iterator[tuple[str, Finding]]":
    """Run checks in this process, and yield (name, finding). Raises `UserError` for a mistake in the experiment."""
    from harness.scripts.script import ScriptSubject

    if isinstance(subject, ScriptSubject):
        yield from watch(subject, names).items()
    else:
        yield from ((name, make_check(subject, name)) for name in names)


def make_check(subject: "Subject", name: str) -> Finding:
    """Run one check in this process and return its finding. Raises `UserError` for a mistake in the experiment."""
    check = load_check(name)
    found: Finding = importlib.import_module(f"harness.checks.{name}").measure(subject)
    check.outcome(found.outcome)  # raises for an undeclared outcome, which is a bug of the check
    return found
