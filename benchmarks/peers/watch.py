"""Runs a command, ends it at a limit of time, and ends whatever it leaves running."""

import contextlib
import os
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

_MARK = "TRAINWRECK_PEERS"


@dataclass(frozen=True)
class Ended:
    """How a command ended: wall-clock seconds, its status (None where it was ended at the limit), what it printed."""

    seconds: float
    status: int | None
    output: str


def run_watched(words: Sequence[str], folder: Path, environment: Mapping[str, str], *, limit: float) -> Ended:
    """Run a command in a folder for at most `limit` seconds of wall time.

    The processes that it starts, in sessions of their own as well, are known by a variable of their environment and
    do not outlive it.
    """
    mark = f"{_MARK}={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        start = perf_counter()
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**environment, name: value},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(timeout=limit)
            seconds = perf_counter() - start
        finally:
            _kill_marked(mark)
            process.wait()
        printed.seek(0)
        return Ended(seconds, status, printed.read())


def _kill_marked(mark: str) -> None:
    """Kill until none is left: what is killed may have started another meanwhile."""
    while found := list(_marked(mark)):
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _marked(mark: str) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        # A process that has ended, or is somebody else's, or is a zombie, has nothing to read.
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)
