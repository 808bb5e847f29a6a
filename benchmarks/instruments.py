"""Times each instrument on the MLP: whole commands, beside a process that imports torch and does nothing."""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.timing import Row, harness_command, interleaved, run, seconds_of, seconds_row
from harness.canonical_setup import run_environment
from harness.checks import check_names

EXERCISE = "huge_lr"
YARDSTICK = "python -c 'import torch'"
# An instrument that is waited for longer than that is not used between two thoughts.
TARGET = 10.0
# Ten of them one after the other.
TRIAGE_TARGET = 15.0

ON_AN_EXERCISE = ("triage", *(name.replace("_", "-") for name in check_names()))


def bench_instrument(command: str, rounds: int) -> Row:
    """Time one instrument on an exercise without a workspace."""
    return _row(command, [harness_command(), command, EXERCISE], rounds)


def bench_compare(rounds: int) -> Row:
    """Time `harness compare` on two whole runs, made beforehand and not timed."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as folder:
        runs = [str(Path(folder) / name) for name in ("plain", "clipped")]
        trainer = [sys.executable, "-m", "harness.trainer", "--break", EXERCISE]
        run([*trainer, "--out", runs[0]])
        run([*trainer, "--out", runs[1], "--clip-norm", "1"])
        return _row("compare", [harness_command(), "compare", *runs], rounds)


def _row(command: str, words: list[str], rounds: int) -> Row:
    environment = run_environment("portable")
    seconds = interleaved(
        {
            command: lambda: seconds_of(words),
            YARDSTICK: lambda: seconds_of([sys.executable, "-c", "import torch"], environment),
        },
        rounds,
    )
    target = TRIAGE_TARGET if command == "triage" else TARGET
    return seconds_row(
        f"instrument-{command}", f"harness {command} (MLP)", target, seconds, command, YARDSTICK
    )


ROUNDS = 3
INSTRUMENTS: dict[str, tuple[Callable[[int], Row], int]] = {
    **{f"instrument-{name}": (partial(bench_instrument, name), ROUNDS) for name in ON_AN_EXERCISE},
    "instrument-compare": (bench_compare, ROUNDS),
}
