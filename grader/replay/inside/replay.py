"""Inside the sandbox: make runs from their sources, and probe each experiment.

`../input/job.json` says what to do: `settings`, `probes` ([{kind}]), `runs` ([{name, source}]) and `platform`,
whether to say what platform class this is. An experiment can read it, so that it has no need to say what figure
a probe must stay below. The files of each run come to lie in `out/<name>/`. Exit 2 for a mistake in an
experiment, with the sentence in `error.txt`; 3 for a fault of ours.
"""

import io
import json
import linecache
import math
import sys
import traceback
from pathlib import Path
from typing import Any

# Resolved before an experiment can change the folder.
JOB = Path("../input/job.json").resolve()
OUT = Path("out").resolve()
CACHE = Path("../input/cache").resolve()


def make_run(name: str, source: str, job: dict[str, Any]) -> None:
    """Train the experiment, then probe a freshly loaded copy of it."""
    from harness.checks.probes import run_probe
    from harness.data.loading import load_dataset
    from harness.recipe import Probe
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.metrics_log import to_strict
    from harness.run.settings import RunSettings
    from harness.trainer import BEST_CHECKPOINT, train

    settings = RunSettings(**job["settings"])
    folder = OUT / name
    folder.mkdir(parents=True)
    data = load_dataset(settings.dataset, cache=CACHE)
    # A relative path: an error names the file as the student knows it. The file lies nowhere here, and its line
    # is to be shown: what has no time in this cache is not looked for on the disk.
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache["experiment.py"] = (len(source), None, lines, "experiment.py")
    experiment = load_experiment(Path("experiment.py"), source)
    train(experiment, tensor_data(data), settings, folder)
    (folder / BEST_CHECKPOINT).unlink()
    figures = []
    for kind in (item["kind"] for item in job["probes"]):
        again = load_experiment(Path("experiment.py"), source)
        if settings.batch_size is not None:
            again.set_constant("BATCH_SIZE", settings.batch_size)
        if settings.epochs is not None:
            again.set_constant("EPOCHS", settings.epochs)
        # The grader alone compares what is measured with the recipe's bound.
        probe = Probe(kind=kind, below=math.inf)
        value = run_probe(probe, again, tensor_data(data), settings.seed).value
        figures.append({"kind": kind, "value": to_strict(float(value))})
    (folder / "probes.json").write_text(json.dumps(figures, allow_nan=False), encoding="utf-8")


def main() -> int:
    """Make every run of the job; exit as the module says."""
    from harness.canonical_setup import apply_numerics
    from harness.errors import UserError

    job = json.loads(JOB.read_text(encoding="utf-8"))
    apply_numerics(job["settings"]["numerics"], job["settings"]["device"])
    OUT.mkdir(exist_ok=True)
    if job["platform"]:
        from harness.run.provenance import platform_class

        found = platform_class(job["settings"]["numerics"], job["settings"]["device"])
        (OUT / "platform.json").write_text(json.dumps(found), encoding="utf-8")
    for run in job["runs"]:
        try:
            make_run(run["name"], run["source"], job)
        except UserError as error:
            (OUT / "error.txt").write_text(str(error), encoding="utf-8")
            return 2
        except Exception:
            traceback.print_exc()
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
