"""Inside the sandbox: run an experiment.

The input is `../input/job.json` with `settings`, `source`, and `platform`, which says whether to write the platform
class. All files are written to `out/`. If the experiment has a mistake, the exit status is 2, and `error.txt` contains
a sentence about the mistake. If the grader itself fails, the exit status is 3.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

# Resolve this path now, because an experiment may change the working folder later.
JOB = Path("../input/job.json").resolve()
OUT = Path("out").resolve()
CACHE = Path("../input/cache").resolve()


def make_run(job: dict[str, Any]) -> None:
    """Run the training that the job describes, and write its log and checkpoint to `out/`."""
    from harness.data.folder import load_folder
    from harness.data.loading import load_dataset
    from harness.recipes.form import is_script
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.settings import RunSettings
    from harness.run.training import BEST_CHECKPOINT, train
    from harness.scripts.run import run_script
    from harness.scripts.script import Script

    settings = RunSettings(**job["settings"])
    # Use a relative path, so that errors name the file as the student knows it.
    path, source = Path("experiment.py"), job["source"]
    if is_script(source):
        data = load_folder(settings.dataset, CACHE).write(Path("data").resolve())
        run_script(Script(path, source), data, settings, OUT, emulate=True)
        return
    train(load_experiment(path, source), tensor_data(load_dataset(settings.dataset, cache=CACHE)), settings, OUT)
    (OUT / BEST_CHECKPOINT).unlink()


def main() -> int:
    """Run the job, and return the exit status."""
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
