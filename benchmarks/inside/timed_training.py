"""Inside the sandbox: train one experiment as a replay does, and leave the seconds that the training itself took.

`../input/job.json` holds its `source` and `settings`; the seconds go to `out/seconds.json`.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

JOB = Path("../input/job.json").resolve()
OUT = Path("out").resolve()
CACHE = Path("../input/cache").resolve()


def main() -> int:
    """Time the training loop with its recording, its validations and its checkpoint, and nothing before or after."""
    from harness.canonical_setup import apply_numerics
    from harness.data.loading import load_dataset
    from harness.run.experiment import load_experiment, tensor_data
    from harness.run.settings import RunSettings
    from harness.trainer import train

    job = json.loads(JOB.read_text(encoding="utf-8"))
    settings = RunSettings(**job["settings"])
    apply_numerics(settings.numerics, settings.device)
    data = tensor_data(load_dataset(settings.dataset, cache=CACHE))
    experiment = load_experiment(Path("experiment.py"), job["source"])
    folder = Path("run")
    folder.mkdir()
    start = perf_counter()
    train(experiment, data, settings, folder)
    seconds = perf_counter() - start
    OUT.mkdir(exist_ok=True)
    (OUT / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
