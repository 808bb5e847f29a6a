"""Inside the sandbox: make the checks of an experiment, or measure its behaviour.

`../input/job.json` says what to do: `settings`, `checks` (names), `behaviour` and `source`. Standard output gets one
line of JSON: for each check an `outcome` with its `figures`, or a `problem`, the sentence for a check that the
experiment does not let us make; under `behaviour` the figures of each aspect, or a `problem`.

Each check has a process of its own, which loads the experiment anew and starts from the seed. It hands its outcome to
this process, which runs no student code, and which alone writes to standard output. So a check finds nothing that an
earlier one has left in memory or in a file, and cannot change what an earlier one has found.
"""

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Resolved before an experiment can change the folder.
INPUT = Path("../input").resolve()
SCRATCH = Path.cwd()
# What a run may write; without a sandbox, only the first folder is its own.
WRITABLE = (SCRATCH, Path("/tmp"), Path("/dev/shm")) if Path("/scratch") == SCRATCH else (SCRATCH,)  # noqa: S108


def main() -> int:
    """Make all checks; exit 3 for a fault of ours."""
    from harness.behaviour.probes import measure_behaviour
    from harness.canonical_setup import apply_numerics
    from harness.checks import make_check
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset
    from harness.errors import UserError
    from harness.run.metrics_log import to_strict
    from harness.run.settings import RunSettings

    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    settings = RunSettings(**job["settings"])
    apply_numerics(settings.numerics, settings.device)
    data = load_dataset(settings.dataset, cache=INPUT / "cache")
    subject = Subject(Path("experiment.py"), job["source"], settings, data)

    def measure(check: str) -> dict[str, Any]:
        try:
            found = make_check(subject, check)
        except UserError as error:
            return {"problem": str(error)}
        return {"outcome": found.outcome, "figures": to_strict(found.figures)}

    def probe(_: str) -> dict[str, Any]:
        try:
            return {"figures": to_strict(measure_behaviour(subject))}
        except UserError as error:
            return {"problem": str(error)}

    made = {}
    for check in job["checks"]:
        made[check] = run_apart(measure, check)
        for folder in WRITABLE:
            empty(folder)
    if job["behaviour"]:
        made["behaviour"] = run_apart(probe, "behaviour")
    print(json.dumps(made, allow_nan=False))
    return 0


def run_apart(measure: Callable[[str], dict[str, Any]], name: str) -> Any:
    """Return what a function finds in a process of its own, or None for nothing readable; end as that process ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(2, 1)
        status = 3
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as file:
                file.write(json.dumps(measure(name), allow_nan=False))
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        os.kill(os.getpid(), -code)
    if code:
        sys.exit(code)
    try:
        return json.loads(content)
    except ValueError:  # only the experiment's own code ends its process so
        return None


def empty(folder: Path) -> None:
    """Delete everything in a folder, but for libraries that the sandbox shows there: they are read-only."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
                empty(path)
                path.rmdir()
            else:
                path.unlink()


if __name__ == "__main__":
    sys.exit(main())
