"""Inside the sandbox: run a candidate's tests on several programs, and judge the follow-up task of an interview.

The input is `../input/job.json` with `kind`, `dataset`, `script` (the candidate's), `healthy`, `tests` and `programs`
({name: source}). The output is one line of JSON on standard output: `tests` ({program: {test: whether it passes}}) and
`follow_up` ({property: "yes" or why not}).

Each program runs in a child process of its own, which sends its result through a pipe. This process runs no code of the
candidate.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

INPUT = Path("../input").resolve()
SCRATCH = Path.cwd()


def main() -> int:
    """Run everything, print the results, and return the exit status: 3 if the grader itself fails."""
    from harness.canonical_setup import apply_numerics
    from harness.data.folder import load_folder
    from harness.interview import follow_up, tests_of
    from harness.run.apart import empty, run_apart
    from harness.scripts import track

    tempfile.tempdir = str(SCRATCH)
    apply_numerics("portable")
    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    data = load_folder(job["dataset"], INPUT / "cache")

    def room(source: str) -> Path:
        empty(SCRATCH)
        data.write(SCRATCH / "data")
        (SCRATCH / "track.py").write_bytes(Path(track.__file__).read_bytes())
        (SCRATCH / tests_of.SCRIPT).write_text(source, encoding="utf-8")
        return SCRATCH

    def test(source: str) -> Callable[[Any], dict[str, Any]]:
        def run(_: Any) -> dict[str, Any]:
            os.chdir = _stay  # pytest goes back to its first folder, and the sandbox forbids that
            folder = room(source)
            (folder / tests_of.TESTS).write_text(job["tests"], encoding="utf-8")
            result = folder / "result.json"
            with contextlib.redirect_stdout(io.StringIO()):
                tests_of.main(str(folder), str(result))
            found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
            return found

        return run

    def follow(_: Any) -> dict[str, Any]:
        folder = room(job["script"])
        (folder / "healthy.py").write_text(job["healthy"], encoding="utf-8")
        return dict(follow_up.judge_here(job["kind"], folder, folder / "healthy.py"))

    found = {
        "tests": {name: run_apart(test(source), []) for name, source in job["programs"].items()},
        "follow_up": run_apart(follow, []),
    }
    print(json.dumps(found, allow_nan=False))
    return 0


def _stay(path: object) -> None:
    """Stay in the folder."""


if __name__ == "__main__":
    os.environ.setdefault("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    sys.exit(main())
