"""Runs `grader score` over a folder as an instructor does, as a whole process, and says what that took."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter

from benchmarks.process_memory import Peak
from benchmarks.timing import BenchmarkError
from grader.replay.cache import entries

# How often the memory of the grader's first process is looked at, and every which time that of all others, which takes
# some 10 ms; a replay lasts a second or more.
_LOOK_SECONDS, _BELOW_EVERY = 0.1, 5


@dataclass(frozen=True)
class Scored:
    """What one `grader score` took: wall-clock seconds, and its memory where that was looked at."""

    seconds: float
    peak: Peak


def score(submissions: Path, out: Path, memory: Path, jobs: int, *, look: bool = False) -> Scored:
    """Score the tarballs in a folder; what is remembered lies in `memory`.

    Raises `BenchmarkError` where it ends with another status than 0 or 1, which says that rows wait for the instructor.
    """
    words = [sys.executable, "-P", "-m", "grader", "score", str(submissions), "--out", str(out)]
    environment = {**os.environ, "TRAINWRECK_REPLAYS": str(memory)}
    peak = Peak()
    with tempfile.TemporaryFile() as said:
        start = perf_counter()
        process = subprocess.Popen(
            [*words, "--jobs", str(jobs)], env=environment, stdout=said, stderr=said, cwd=submissions.parent
        )
        try:
            if look:
                _watch(process, peak)
            status = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        seconds = perf_counter() - start
        said.seek(0)
        if status > 1:
            raise BenchmarkError(f"grader score ended with status {status}:\n{said.read().decode()[-4000:]}")
    return Scored(seconds, peak)


def _watch(process: subprocess.Popen[bytes], peak: Peak) -> None:
    for turn in count():
        try:
            process.wait(_LOOK_SECONDS)
            return
        except subprocess.TimeoutExpired:
            peak.look(process.pid, below=turn % _BELOW_EVERY == 0)


def replays_in(memory: Path) -> int:
    """Return how many replays are remembered."""
    return sum(entry.path.parents[1] == memory for entry in entries(memory))
