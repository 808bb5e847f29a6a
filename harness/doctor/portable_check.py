"""`make test-portable`: one run and the golden table, on this processor and on three emulated ones.

QEMU's user mode emulates the processor of one process, and not of the processes that it starts. So each emulated
processor is a small script that stands for the Python interpreter and counts its calls, and the trainer is told to
start its child with that script.
"""

import hashlib
import json
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.canonical_setup import run_environment
from harness.workspace import CHECKPOINT, METRICS_LOG

QEMU = "qemu-x86_64"
# From before AVX; with AVX2 and fused multiply-add; the same from AMD.
PROCESSORS = ("Nehalem", "Haswell", "EPYC")
TRAINING = ("--seed", "42", "--break", "missing_zero_grad", "--epochs", "1", "--max-steps", "10")

# The trainer starts its child with sys.executable. It takes no part in the run, so it need not be emulated.
_TRAINER = (
    "import sys; sys.executable = sys.argv.pop(1); from harness.run.trainer_cli import trainer_command;"
    " trainer_command()"
)
# /proc/cpuinfo is not emulated. NumPy asks the processor itself, and loads ten times as fast as torch.
_FEATURES = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(*(n for n in f if f[n]))"
_SHOWN = ("SSE42", "AVX", "FMA3", "AVX2", "AVX512F")


def emulated_python(processor: str, folder: Path) -> str:
    """Write a script that runs this Python on an emulated processor, and return its path."""
    path = folder / f"python-{processor}"
    command = shlex.join([QEMU, "-cpu", processor, sys.executable])
    path.write_text(f'#!/bin/sh\necho >>"$0.calls"\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def features(python: str) -> list[str]:
    """Return the processor features, in NumPy's names, that a process of this interpreter sees."""
    seen = _output([python, "-c", _FEATURES], run_environment("native")).split()
    return [feature for feature in _SHOWN if feature in seen]


def run_with(python: str, folder: Path) -> tuple[str, str, str]:
    """Return the hashes of log and checkpoint of a run with this interpreter, and the wrong golden digests.

    Raises `RuntimeError` if a command fails, or if another interpreter made the run.
    """
    environment = run_environment("portable")
    golden = json.loads(_output([python, "-m", "harness.doctor.golden"], environment))["operations"]
    wrong = ", ".join(name for name, verdict in golden.items() if verdict == "wrong")
    calls = Path(f"{python}.calls")
    before = calls.stat().st_size if calls.exists() else -1
    _output([sys.executable, "-c", _TRAINER, python, *TRAINING, "--out", str(folder)], environment)
    if before >= 0 and calls.stat().st_size == before:
        raise RuntimeError(f"The trainer did not start its child with {python}.")
    log, checkpoint = (
        hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in (METRICS_LOG, CHECKPOINT)
    )
    return log, checkpoint, wrong or "same"


def _output(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{shlex.join(command)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


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
            outcome, sees = run_with(python, Path(name) / processor), " ".join(features(python))
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
