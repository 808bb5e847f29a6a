"""Inside the sandbox: run an experiment.

`../input/job.json` says what to do: `settings`, `source`, and `platform`, whether to say what platform class this is.
All files go to `out/`. Exit 2 for a mistake in the experiment, with the sentence in `error.txt`; 3 for a fault of ours.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

# Resolved before an experiment can change the folder.
JOB = Path("../input/job.json").resolve()
OUT = Path("out").resolve()
CACHE = Path("../input/cache").resolve()


def make_run(job: dict[str, Any]) -> None:
    """Train the experiment."""
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.settings import RunSettings
    from harness.run.training import BEST_CHECKPOINT, train

    settings = RunSettings(**job["settings"])
    data = load_dataset(settings.dataset, cache=CACHE)
    # A relative path: an error names the file as the student knows it.
    train(load_experiment(Path("experiment.py"), job["source"]), tensor_data(data), settings, OUT)
    (OUT / BEST_CHECKPOINT).unlink()


def main() -> int:
    """Do the job; exit as the module says."""
    from harness.canonical_setup import apply_numerics
    from harness.errors import UserError

    job = json.loads(JOB.read_text(encoding="utf-8"))
    apply_numerics(job["settings"]["numerics"], job["settings"]["device"])
    OUT.mkdir(exist_ok=True)
    if job["platform"]:
        from harness.run.provenance import platform_class

        found = platform_class(job["settings"]["numerics"], job["settings"]["device"])
        (OUT / "platform.json").write_text(json.dumps(found), encoding="utf-8")
    try:
        make_run(job)
    except UserError as error:
        (OUT / "error.txt").write_text(str(error), encoding="utf-8")
        return 2
    except Exception:
        traceback.print_exc()
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
