"""Inside the sandbox: run checks on an experiment, or measure its behaviour.

The input is `../input/job.json` with `settings`, `checks` (names), `behaviour` and `source`. The output is one line of
JSON on standard output. For each check, the line contains an `outcome` and the measured `figures`, or a `problem`,
which is a sentence that says why the check could not run. Under `behaviour`, it contains the `figures` of each aspect,
or a `problem`.

Each check runs in a child process, which loads the experiment again, sets the random seed, and sends its outcome to
this process. The checks of a script share one child. This process runs no student code, and only this process writes to
standard output. So a check cannot read what an earlier check has left in memory or in files, and cannot change an
earlier outcome.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Resolve this path now, because an experiment may change the working folder later.
INPUT = Path("../input").resolve()
SCRATCH = Path.cwd()
# The folders into which a run may write. Without a sandbox, a run may write only into the first folder.
WRITABLE = (SCRATCH, Path("/tmp"), Path("/dev/shm")) if Path("/scratch") == SCRATCH else (SCRATCH,)  # noqa: S108


def main() -> int:
    """Run all checks, print their results, and return the exit status: 3 if the grader itself fails."""
    from harness.behaviour.measure import measure
    from harness.canonical_setup import apply_numerics
    from harness.checks.core.library import make_checks, open_subject
    from harness.errors import UserError
    from harness.recipes.form import is_script
    from harness.run.apart import empty, run_apart
    from harness.run.metrics_log import to_strict
    from harness.run.settings import RunSettings

    tempfile.tempdir = str(SCRATCH)  # without a sandbox, the only folder for files
    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    settings = RunSettings(**job["settings"])
    apply_numerics(settings.numerics, settings.device)

    def check(names: Sequence[str]) -> dict[str, Any]:
        with open_subject(Path("experiment.py"), job["source"], settings, INPUT / "cache") as subject:
            try:
                found = dict(make_checks(subject, names))
            except UserError as error:
                return {name: {"problem": str(error)} for name in names}
        return {name: {"outcome": one.outcome, "figures": to_strict(one.figures)} for name, one in found.items()}

    def probe(_: Sequence[str]) -> dict[str, Any]:
        with open_subject(Path("experiment.py"), job["source"], settings, INPUT / "cache") as subject:
            try:
                return {"figures": to_strict(measure(subject))}
            except UserError as error:
                return {"problem": str(error)}

    made: dict[str, Any] = {}
    checks = job["checks"]
    # All checks of a script see the same runs of it. Other checks each load the experiment again.
    for names in [checks] if checks and is_script(job["source"]) else [[name] for name in checks]:
        made |= run_apart(check, names) or dict.fromkeys(names)
        for folder in WRITABLE:
            empty(folder)
    if job["behaviour"]:
        made["behaviour"] = run_apart(probe, ["behaviour"])
    print(json.dumps(made, allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
