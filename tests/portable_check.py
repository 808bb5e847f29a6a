"""`make test-portable`: seven short runs and the golden table, on this processor and on three emulated ones.

QEMU's user mode emulates the processor of one process, and not of the processes that it starts. So each emulated
processor is a small script that stands for the Python interpreter, and `launch` starts the process that trains with it.
"""

import hashlib
import json
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from harness.canonical_setup import Numerics, run_environment
from harness.run.files import CHECKPOINT, METRICS_LOG
from harness.run.settings import RunJob, RunSettings
from harness.student.runs import launch, single_run_job

QEMU = "qemu-x86_64"
# From before AVX; with AVX2 and fused multiply-add; the same from AMD.
PROCESSORS = ("Nehalem", "Haswell", "EPYC")
# A perceptron, a transformer, a recurrent cell, and a table.
RUNS = {"missing_zero_grad": "digits", "positions_missing": "phrases", "bptt_cut": "marks", "column_order": "visits"}
# Scripts made short: products in bfloat16, workers of a loader, and two ranks.
SCRIPTS = {
    "char_gpt": ("tales", "steps: int = 180", "steps: int = 10"),
    "digits_mixup": ("digits", "EPOCHS = 6", "EPOCHS = 1"),
    "shapes_ddp": ("shapes", "EPOCHS = 5", "EPOCHS = 1"),
}

# /proc/cpuinfo is not emulated. NumPy asks the processor itself, and loads ten times as fast as torch.
_FEATURES = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(*(n for n in f if f[n]))"
_SHOWN = ("SSE42", "AVX", "FMA3", "AVX2", "AVX512F")


def emulated_python(processor: str, folder: Path) -> str:
    """Write a script that runs this Python on an emulated processor, and return its path."""
    path = folder / f"python-{processor}"
    command = shlex.join([QEMU, "-cpu", processor, sys.executable])
    # QEMU warns at every start of what it cannot emulate.
    path.write_text(f'#!/bin/sh\nexec {command} "$@" 2>>"$0.errors"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def features(python: str) -> list[str]:
    """Return the processor features, in NumPy's names, that a process of this interpreter sees."""
    seen = _output("native", python, "-c", _FEATURES).split()
    return [feature for feature in _SHOWN if feature in seen]


def run_with(python: str, folder: Path) -> tuple[str, str, str]:
    """Return the hashes of the logs and checkpoints of the runs with this interpreter, and the wrong golden digests."""
    golden = json.loads(_output("portable", python, "-m", "harness.doctor.golden"))["operations"]
    wrong = ", ".join(name for name, verdict in golden.items() if verdict == "wrong")
    logs, checkpoints = hashlib.sha256(), hashlib.sha256()
    with patch.object(sys, "executable", python):
        for job in _jobs(folder):
            result = launch(job, bar=False)
            logs.update(Path(job.folder, METRICS_LOG).read_bytes())
            checkpoints.update(result["checkpoint_sha256"].encode())
    return logs.hexdigest(), checkpoints.hexdigest(), wrong or "same"


def _jobs(folder: Path) -> Iterator[RunJob]:
    for recipe, dataset in RUNS.items():
        settings = RunSettings(seed=42, dataset=dataset, epochs=1, max_steps=10)
        yield single_run_job(recipe, settings, folder / recipe)
    for name, (dataset, constant, short) in SCRIPTS.items():
        job = single_run_job("none", RunSettings(seed=42, dataset=dataset), folder / name, experiment=name)
        assert constant in job.source
        yield replace(job, source=job.source.replace(constant, short))


def _output(numerics: Numerics, *command: str) -> str:
    environment = run_environment(numerics)
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def main() -> int:
    """Print a table of the processors and return 0 if all agree, 1 if not, 2 if QEMU is missing."""
    if platform.machine() != "x86_64" or shutil.which(QEMU) is None:
        print(f"This needs an x86-64 processor and {QEMU} (on Debian: apt-get install qemu-user).")
        return 2
    print(f"{'processor':<12}{'sees':<28}{METRICS_LOG:<14}{CHECKPOINT:<14}golden table")
    outcomes, seen = set(), set()
    with tempfile.TemporaryDirectory(prefix="trainwreck-portable-") as name:
        for processor in ("this one", *PROCESSORS):
            own = processor == "this one"
            python = sys.executable if own else emulated_python(processor, Path(name))
            try:
                outcome, sees = run_with(python, Path(name) / processor), " ".join(features(python))
            except Exception:
                print(Path(f"{python}.errors").read_text(encoding="utf-8")[-2000:] if not own else "")
                raise
            log, checkpoint, golden = outcome
            print(f"{processor:<12}{sees:<28}{log[:12]:<14}{checkpoint[:12]:<14}{golden}", flush=True)
            outcomes.add(outcome)
            seen.add(sees)
    if len(seen) == 1:
        print("Every processor looked alike: this shows nothing.")
        return 1
    agree = len(outcomes) == 1 and outcomes.pop()[2] == "same"
    print("The same bytes on all of them." if agree else "NOT the same bytes.")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
