"""`make test-portable`: one run and the golden table, on this processor and on three emulated ones.

QEMU's user mode emulates the processor of one process, and not of the processes that it starts. So each emulated
processor is a small script that stands for the Python interpreter and counts its calls, and the trainer is told to
start its child with that script.
"""

import argparse
import hashlib
import json
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.canonical_setup import run_environment

QEMU = "qemu-x86_64"
# From before AVX; with AVX2 and fused multiply-add; the same from AMD.
PROCESSORS = ("Nehalem", "Haswell", "EPYC")
TRAINING = "--seed 42 --break missing_zero_grad --epochs 1 --max-steps 10"

# The trainer starts its child with sys.executable. It takes no part in the run, so it need not be emulated.
_TRAINER = (
    "import sys; sys.executable = sys.argv.pop(1); from harness.run.trainer_cli import trainer_command;"
    " trainer_command()"
)
# /proc/cpuinfo is not emulated. NumPy asks the processor itself, and loads ten times as fast as torch.
_FEATURES = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(*(n for n in f if f[n]))"
_SHOWN = ("SSE42", "AVX", "FMA3", "AVX2", "AVX512F")


@dataclass(frozen=True)
class Result:
    """The features of one processor, and the hashes of log and checkpoint and the verdict on the golden table."""

    processor: str
    features: frozenset[str]
    outcome: tuple[str, str, str]
    seconds: float


def emulated_python(processor: str, folder: Path) -> Path:
    """Write the script that runs this Python on an emulated processor, and return its path."""
    path = folder / f"python-{processor}"
    command = shlex.join([QEMU, "-cpu", processor, sys.executable])
    path.write_text(f'#!/bin/sh\necho >>"$0.calls"\nexec {command} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def features(python: str) -> frozenset[str]:
    """Return the processor features, in NumPy's names, that a process of this interpreter sees."""
    return frozenset(_output([python, "-c", _FEATURES], run_environment("native")).split())


def examine(processor: str, python: str, training: Sequence[str], folder: Path) -> Result:
    """Compute the golden table and make one run with this interpreter.

    Raises `RuntimeError` if a command fails, or if another interpreter made the run.
    """
    started = time.monotonic()
    environment = run_environment("portable")
    golden = json.loads(_output([python, "-m", "harness.doctor.golden"], environment))["digests"]
    table = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))["digests"]
    wrong = [name for name, digest in golden.items() if table.get(name, "") not in (None, digest)]
    calls = Path(f"{python}.calls")
    before = calls.stat().st_size if calls.exists() else 0
    _output([sys.executable, "-c", _TRAINER, python, *training, "--out", str(folder)], environment)
    if calls.exists() and calls.stat().st_size == before:
        raise RuntimeError(
            f"The run on {processor} was not made by {python}: the trainer starts it otherwise."
        )
    log, checkpoint = (
        hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("metrics.log", "checkpoint.pt")
    )
    outcome = (log, checkpoint, ", ".join(wrong) or "same")
    return Result(processor, features(python), outcome, time.monotonic() - started)


def _output(command: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`{shlex.join(command)}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of the processors and return 0 if all agree, 1 if not, 2 if QEMU is missing."""
    parser = argparse.ArgumentParser(prog="python -m harness.doctor.portable_check", description=__doc__)
    parser.add_argument("--training", default=TRAINING, help="options of the trainer (default: %(default)s)")
    parser.add_argument("--cpu", nargs="+", default=PROCESSORS, help="processors (default: %(default)s)")
    options = parser.parse_args(arguments)
    if platform.machine() != "x86_64" or shutil.which(QEMU) is None:
        print(
            f"This needs an x86-64 processor and {QEMU}. Install it with `sudo apt-get install qemu-user` (Debian,"
            " Ubuntu), `sudo dnf install qemu-user` (Fedora) or `sudo pacman -S qemu-user` (Arch).",
            file=sys.stderr,
        )
        return 2
    training = shlex.split(options.training)
    print(
        f"{'processor':<12}{'sees':<28}{'seconds':>8}  {'metrics.log':<14}{'checkpoint.pt':<14}golden table"
    )
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="trainwreck-portable-") as name:
        for processor in ("this one", *options.cpu):
            own = processor == "this one"
            python = sys.executable if own else str(emulated_python(processor, Path(name)))
            result = examine(processor, python, training, Path(name) / f"run-{len(results)}")
            seen = " ".join(feature for feature in _SHOWN if feature in result.features)
            log, checkpoint, golden = result.outcome
            row = f"{processor:<12}{seen:<28}{result.seconds:>8.1f}  {log[:12]:<14}{checkpoint[:12]:<14}{golden}"
            print(row, flush=True)
            results.append(result)
    return _conclude(results)


def _conclude(results: Sequence[Result]) -> int:
    first = results[0]
    different = [result.processor for result in results if result.outcome != first.outcome]
    if different or first.outcome[2] != "same":
        print(f"NOT the same bytes: {', '.join(different) or 'the golden table'}.")
        return 1
    if len({result.features for result in results}) == 1:
        print("The same bytes, but every processor looked alike: this shows nothing.")
        return 1
    print(f"The same bytes on {len(results)} processors.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
