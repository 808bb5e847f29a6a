"""Inside the sandbox: make the checks of an experiment, or measure its behaviour.

`../input/job.json` says what to do: `settings`, `checks` (names), `behaviour` and `source`. `out/<check>.json` has an
`outcome` with its `figures`, or a `problem`, the sentence for a check that the experiment does not let us make.
`out/behaviour.json` has the figures of each aspect.

All checks share this process, as on a student's machine: each loads the experiment anew and starts from the seed. Code
that leaves a trace from one check to the next is no plain edit, and gets no points for what it measures itself.
"""

import json
import sys
import traceback
from pathlib import Path

# Resolved before an experiment can change the folder.
INPUT = Path("../input").resolve()
OUT = Path("out").resolve()


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
    OUT.mkdir(exist_ok=True)
    for check in job["checks"]:
        try:
            found = make_check(subject, check)
            made = {"outcome": found.outcome, "figures": to_strict(found.figures)}
        except UserError as error:
            made = {"problem": str(error)}
        except Exception:
            traceback.print_exc()
            return 3
        (OUT / f"{check}.json").write_text(json.dumps(made, allow_nan=False), encoding="utf-8")
    if job["behaviour"]:
        try:
            found = to_strict(measure_behaviour(subject))
        except UserError as error:
            (OUT / "error.txt").write_text(str(error), encoding="utf-8")
            return 2
        (OUT / "behaviour.json").write_text(json.dumps(found, allow_nan=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
