"""Find checks, load their declarations, and run them on an experiment with functions or on a script."""

import importlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.checks.core.declaration import read_check
from harness.checks.core.finding import Check, Finding
from harness.checks.core.of_scripts import measure_script, script_checks
from harness.errors import UserError, suggestion
from harness.recipes.form import is_script

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
    return read_check(_FOLDER, name, script_checks())


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
        yield from measure_script(subject, names).items()
    else:
        yield from ((name, make_check(subject, name)) for name in names)


def make_check(subject: "Subject", name: str) -> Finding:
    """Run one check in this process and return its finding. Raises `UserError` for a mistake in the experiment."""
    check = load_check(name)
    found: Finding = importlib.import_module(f"harness.checks.{name}").measure(subject)
    check.outcome(found.outcome)  # raises for an undeclared outcome, which is a bug of the check
    return found
