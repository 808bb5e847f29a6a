"""The checks of scripts: the library `trainwreck` has most of them, `harness.checks.scripts` the others.

Their outcomes are read here without importing torch. A check of the library has the outcome "sound", or one that the
library reports: alarms show the fault itself, advice shows something that a sound training may have, too. Names have
underscores here, as all names of checks.
"""

import ast
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from harness.checks.core.declaration import read_check
from harness.checks.core.finding import PLACE, Check, Finding, Outcome
from harness.errors import UserError
from harness.recipes.suite import suite_path

if TYPE_CHECKING:
    from harness.scripts.script import ScriptSubject

_FOLDER = Path(__file__).parents[1] / "scripts"
SOUND = Outcome("sound", "sound", "This check of the library trainwreck finds nothing wrong.")
# A run of a recipe repeats to the byte, and this check needs a process with other hashes.
_LEFT_OUT = frozenset({"repeat"})
_KINDS: Mapping[str, Any] = {"alarm": "mechanism", "advice": "consequence", "note": "sound"}
_UPDATES = 12
_PATIENCE = "100"  # a run has a limit of its own
_ORDER = 1000  # after the checks of experiments with functions


@cache
def script_checks() -> Mapping[str, Check]:
    """Return the checks of scripts by name: first the checks of the library in its order, then the others."""
    return {**_checks_of_library(), **{name: read_check(_FOLDER, name, {}) for name in _own_names()}}


@cache
def _own_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def _checks_of_library() -> Mapping[str, Check]:
    folder = suite_path("trainwreck") / "checks"
    classes = {
        node.name: (node, ast.get_docstring(tree) or "")
        for path in sorted(folder.glob("*.py"))
        for tree in [ast.parse(path.read_text(encoding="utf-8"))]
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    listed = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body[-1]
    order = [node.id for node in ast.walk(listed.value) if isinstance(node, ast.Name)]  # type: ignore[attr-defined]
    checks = [_read(*classes[name], place) for place, name in enumerate(name for name in order if name in classes)]
    return {check.name: check for check in checks if check.name not in _LEFT_OUT}


def _read(node: ast.ClassDef, documentation: str, place: int) -> Check:
    """Return a check from the syntax tree of its class, of which only the constants are read."""
    found = {ast.unparse(one.targets[0]): one.value for one in node.body if isinstance(one, ast.Assign)}
    found |= {ast.unparse(one.target): one.value for one in node.body if isinstance(one, ast.AnnAssign) and one.value}
    table = found["outcomes"]
    assert isinstance(table, ast.Dict)
    outcomes = [SOUND]
    for key, value in zip(table.keys, table.values, strict=True):
        assert key is not None
        assert isinstance(value, ast.Call)
        level, meaning = (ast.literal_eval(one) for one in value.args[:2])
        outcomes.append(Outcome(ast.literal_eval(key), _KINDS[level], meaning))
    name = ast.literal_eval(found["name"]).replace("-", "_")
    own = ast.get_docstring(node) or ""
    return Check(name, own or documentation, _ORDER + place, ast.literal_eval(found["question"]), 1.0, tuple(outcomes))


def load_library() -> None:
    """Import the library, which lies beside the packages or in the suite of a wheel.

    Its time limits, which it computes when it is imported, become so long that a busy machine does not decide.
    """
    if (above := str(suite_path("trainwreck").parent)) not in sys.path:
        sys.path.append(above)
    with patch.dict(os.environ, {"TRAINWRECK_PATIENCE": _PATIENCE}):
        for name in ("trainwreck.child", "trainwreck.runs", "trainwreck.checks"):
            importlib.import_module(name)


def measure_script(subject: "ScriptSubject", names: Collection[str]) -> dict[str, Finding]:
    """Return the finding of each named check of scripts. Raises `UserError` if the script fails."""
    own = [name for name in names if name in _own_names()]
    found = _watch(subject, [name for name in names if name not in own]) if len(own) < len(names) else {}
    for name in own:
        found[name] = importlib.import_module(f"harness.checks.scripts.{name}").measure(subject)
    return {name: found[name] for name in names}


def _watch(subject: "ScriptSubject", names: Collection[str]) -> dict[str, Finding]:
    """Watch a script in forks of this process, and return the finding of each named check of the library."""
    load_library()
    from harness.scripts import track
    from harness.scripts.numerics import apply_script_numerics
    from harness.scripts.ranks import SecondRank
    from harness.scripts.run import watch_loaders
    from trainwreck import child
    from trainwreck.runs import watch_script

    apply_script_numerics()
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as folder:
        script = Path(folder, subject.path.name)
        script.write_text(subject.source, encoding="utf-8")
        shutil.copy(track.__file__, Path(folder, "track.py"))
        arguments = ["--data", str(subject.data), "--out", f"{folder}/out", "--seed", str(subject.settings.seed)]
        wanted = [name.replace("_", "-") for name in names]
        with watch_loaders(lambda batch: None, emulate=True), SecondRank(subject.script.ranks):
            found = watch_script(script, arguments, _UPDATES, wanted, fork=child.main, quiet=True)
    if found is None:
        raise UserError(f"{subject.path} ended without a result while the checks watched it.")
    if found["failure"]:
        raise UserError(f"{subject.path} failed: {found['failure'].strip().splitlines()[-1]}")
    return dict(_findings(found, names))


def _findings(found: Mapping[str, Any], names: Collection[str]) -> Iterator[tuple[str, Finding]]:
    from trainwreck.places import Place

    levels = list(_KINDS)
    by_check: dict[str, list[Mapping[str, Any]]] = {}
    for one in sorted(found["findings"], key=lambda one: levels.index(one["level"])):
        by_check.setdefault(one["check"].replace("-", "_"), []).append(one)
    for name in names:
        reported = by_check.get(name, [])
        if not reported:
            yield name, Finding(SOUND.id, f"nothing found in {found['steps']} updates", {})
            continue
        first, *others = reported
        more = {f"also {one['outcome']}": one["text"] for one in others if one["outcome"] != first["outcome"]}
        figures = {PLACE: str(Place(**first["place"])), **more}
        yield name, Finding(first["outcome"], first["text"], figures)
