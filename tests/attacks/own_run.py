"""Makes the fixed run of an attacker's experiment as its author would at home: logs that lie agree with the source."""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from harness.canonical_setup import run_environment
from harness.recipe import ROOT

# What the trainer's own command does, without pages and pictures.
_CHILD = """
import sys
from pathlib import Path
from harness.data.loading import load_dataset
from harness.run.experiment import tensor_data
from harness.run.experiment import load_experiment
from harness.canonical_setup import apply_numerics
from harness.run.settings import RunSettings
from harness.trainer import train
apply_numerics("portable", "cpu")
experiment = load_experiment(Path("experiment.py"), Path("experiment.py").read_text())
train(experiment, tensor_data(load_dataset("digits")), RunSettings(seed=42, dataset="digits"), Path("."))
"""


@cache
def own_run(source: str) -> dict[str, bytes]:
    """Return log and checkpoint of an experiment of `huge_lr`, by their names in a tarball.

    It runs without a sandbox: only for sources of ours that are harmless. Raises `CalledProcessError` where it
    does not come to its end.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "experiment.py").write_text(source)
        environment = run_environment("portable") | {"PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-P", "-c", _CHILD], cwd=folder, env=environment, check=True)
        return {
            f"runs/fixed/{name}": (folder / name).read_bytes() for name in ("metrics.log", "checkpoint.pt")
        }
