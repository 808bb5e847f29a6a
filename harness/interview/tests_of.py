"""Run the candidate's tests on one program: `python -m harness.interview.tests_of FOLDER RESULT`.

FOLDER has the program as `train.py`, the tests and the data. RESULT gets {test: whether it passes} as JSON.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.canonical_setup import run_environment

SCRIPT, TESTS = "train.py", "test_train.py"
_SECONDS = 180


def run_tests(folder: Path, source: str, tests: str) -> dict[str, bool]:
    """Run the tests of an interview's folder on a program, in another process. Return {} if they cannot be loaded."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-") as scratch:
        place = Path(scratch, "room")
        place.mkdir()
        for name in ("data", "track.py"):
            copy = shutil.copytree if (folder / name).is_dir() else shutil.copy
            copy(folder / name, place / name)
        (place / SCRIPT).write_text(source, encoding="utf-8")
        (place / TESTS).write_text(tests, encoding="utf-8")
        result = Path(scratch, "result.json")
        command = [sys.executable, "-P", "-m", "harness.interview.tests_of", str(place), str(result)]
        try:
            subprocess.run(command, env=run_environment("portable"), timeout=_SECONDS, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return {}
        found: Mapping[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else {}
        return {str(name): bool(passed) for name, passed in found.items()}


class _Notes:
    """A plug-in of pytest that notes which tests pass."""

    def __init__(self) -> None:
        self.passed: dict[str, bool] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails in any of its phases."""
        name = report.nodeid.partition("::")[2]
        self.passed[name] = self.passed.get(name, True) and not report.failed and not report.skipped


def main(folder: str, result: str) -> int:
    """Run pytest in this process."""
    import pytest

    with suppress(OSError):  # the grader's sandbox forbids it, and this is its folder already
        os.chdir(folder)
    sys.path.insert(0, folder)
    notes = _Notes()
    pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", folder, str(Path(folder, TESTS))], plugins=[notes])
    Path(result).write_text(json.dumps(notes.passed), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
