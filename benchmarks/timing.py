"""Times whole processes, and turns rounds of seconds into the rows of the table."""

import json
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, the most it may be, and what it was computed from.

    `unit` is "x" for a ratio, "s" or "ms" for a time and "MB" for memory; `seconds` holds every round, by what was
    timed. With `at_least`, the target is the least that the figure may be.
    """

    name: str
    what: str
    value: float
    unit: str
    target: float
    detail: str
    seconds: Mapping[str, Sequence[float]]
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure is within its target."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON, with `met`."""
        return {**vars(self), "met": self.met}


class BenchmarkError(Exception):
    """A timed command failed, so there is nothing to compare; the message holds its output."""


def harness_command() -> str:
    """Return the path of the installed `harness` command. Raises `BenchmarkError` where it is missing."""
    path = Path(sysconfig.get_path("scripts")) / "harness"
    if not path.is_file():
        raise BenchmarkError(f"There is no {path}: install the project with make, then run make bench.")
    return str(path)


def run(
    words: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> str:
    """Run a command and return its standard output. Raises `BenchmarkError` if it fails."""
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(
            f"{' '.join(words)} ended with status {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def seconds_of(words: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Return the wall-clock seconds of one whole process, run in a fresh folder that is then deleted."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as folder:
        start = perf_counter()
        run(words, os.environ if environment is None else environment, Path(folder))
        return perf_counter() - start


def interleaved(kinds: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each kind: every round times all of them, in turns forwards and backwards.

    Whatever slows the machine for a while then slows all kinds alike. A first round warms caches and is
    thrown away.
    """
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for index in range(rounds + 1):
        for kind in sorted(kinds, reverse=bool(index % 2)):
            took = kinds[kind]()
            if index:
                seconds[kind].append(took)
    return seconds


def ratio_row(
    name: str, what: str, target: float, seconds: Mapping[str, Sequence[float]], measured: str, yardstick: str
) -> Row:
    """Return the row of a ratio: the median over the rounds of measured / yardstick, timed in one round."""
    ratios = [a / b for a, b in zip(seconds[measured], seconds[yardstick], strict=True)]
    best = min(seconds[measured]) / min(seconds[yardstick])
    detail = (
        f"{_time(median(seconds[measured]))} against {_time(median(seconds[yardstick]))};"
        f" ratio of the fastest rounds {best:.2f}; {len(ratios)} rounds"
    )
    return Row(name, what, median(ratios), "x", target, detail, dict(seconds))


def seconds_row(
    name: str, what: str, target: float, seconds: Mapping[str, Sequence[float]], measured: str, yardstick: str
) -> Row:
    """Return the row of an absolute time: the median of the rounds, with a yardstick beside it."""
    took, other = seconds[measured], seconds[yardstick]
    detail = (
        f"fastest {_time(min(took))}; {yardstick} {_time(median(other))}, ratio {median(took) / median(other):.1f};"
        f" {len(took)} rounds"
    )
    return Row(name, what, median(took), "s", target, detail, dict(seconds))


def slowest_row(name: str, what: str, target: float, seconds: Mapping[str, Sequence[float]]) -> Row:
    """Return the row of the slowest of several commands, each by the median of its rounds; all are listed."""
    medians = {kind: median(rounds) for kind, rounds in seconds.items()}
    ordered = sorted(medians, key=lambda kind: medians[kind], reverse=True)
    detail = ", ".join(f"{kind} {_time(medians[kind])}" for kind in ordered)
    return Row(name, what, medians[ordered[0]], "s", target, detail, dict(seconds))


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def parse_seconds(text: str) -> dict[str, list[float]]:
    """Return the rounds that `benchmarks/loop.py` printed."""
    seconds: dict[str, list[float]] = json.loads(text)
    return seconds
