"""What checks found of the experiments of a student's other exercises, made when a tree asks, and kept beside it."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.checks import run_checks
from harness.files import write_whole
from harness.run.provenance import harness_hash
from harness.run.settings import RunSettings
from harness.workspace import OUTCOMES


class Outcomes:
    """Makes checks in processes of their own. What was found once is read from the folder of the tree.

    An entry stands for the experiment, its settings and the harness: where one of them is another, it is made anew.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / OUTCOMES
        self._known = _read(self._path)

    def of(self, source: str, settings: RunSettings, check: str, source_path: Path | None = None) -> str:
        """Return the outcome of a check. Raises what `run_checks` does: `UserError`, `Stopped`, `ChildFault`."""
        decides = json.dumps([source, asdict(settings), harness_hash(), check])
        key = hashlib.sha256(decides.encode()).hexdigest()
        if key not in self._known:
            found = run_checks(source, settings, [check], source_path=source_path, bar=True)
            self._known[key] = found[check].outcome
            write_whole({self._path: json.dumps(self._known, indent=1).encode()})
        return self._known[key]


def _read(path: Path) -> dict[str, str]:
    """Return what is remembered; a file that was spoilt is as good as none."""
    try:
        known: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict) or not all(isinstance(value, str) for value in known.values()):
        return {}
    return known
