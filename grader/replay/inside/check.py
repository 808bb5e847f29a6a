"""Inside the sandbox: make the checks of an experiment, each in a process of its own.

`../input/job.json` says what to do: `settings`, `checks` (names) and `source`. `out/<check>.json` has an `outcome` with
its `figures`, or a `problem`, the sentence for a check that the experiment does not let us make. The processes fork
before any of the experiment's code runs, so that none can find out what another, or a run, has done.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

INPUT = Path("../input").resolve()
OUT = Path("out").resolve()


def make(job: dict[str, Any], check: str) -> dict[str, Any]:
    """Make one check."""
    from harness.checks import make_check
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset
    from harness.errors import UserError
    from harness.run.metrics_log import to_strict
    from harness.run.settings import RunSettings

    settings = RunSettings(**job["settings"])
    data = load_dataset(settings.dataset, cache=INPUT / "cache")
    try:
        found = make_check(Subject(Path("experiment.py"), job["source"], settings, data), check)
    except UserError as error:
        return {"problem": str(error)}
    return {"outcome": found.outcome, "figures": to_strict(found.figures)}


def main() -> int:
    """Make all checks; exit 3 for a fault of ours."""
    from harness.canonical_setup import apply_numerics

    job = json.loads((INPUT / "job.json").read_text(encoding="utf-8"))
    apply_numerics(job["settings"]["numerics"], job["settings"]["device"])
    OUT.mkdir(exist_ok=True)
    status = 0
    for check in job["checks"]:
        child = os.fork()
        if child == 0:
            try:
                (OUT / f"{check}.json").write_text(json.dumps(make(job, check), allow_nan=False), encoding="utf-8")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(3)
        status = status or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status


if __name__ == "__main__":
    sys.exit(main())
