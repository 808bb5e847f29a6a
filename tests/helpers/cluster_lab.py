"""A Dask cluster on this machine for tests, in processes that the tests may kill.

Workers load this file (`dask worker --preload`) and invent replays from the source of each request. `die` ends the
worker. `wait FOLDER` creates a file `begun-*` there and waits for a file `go`. `break FILE` makes the sandbox of the
first worker fail.
"""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from grader.replay import cluster
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.request import Request

PATIENCE = 240  # seconds, for machines that run many tests at the same time
BROKEN = "the sandbox is broken: fix it"
_CODE, _SANDBOX = "STAND_IN_CODE", "STAND_IN_SANDBOX"


class Lab:
    """The processes of one cluster. `folder` contains their output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.scheduler = self._start("scheduler", "--port", "0", "--no-jupyter")
        said = self._folder / "scheduler.log"
        until(lambda: "Scheduler at:" in said.read_text())
        self.address = re.findall(r"Scheduler at:\s+(\S+)", said.read_text())[0]
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, *names: str, real: bool = False) -> list[int]:
        """Start workers, wait for them, and return their process ids. Dead workers are not replaced."""
        started = [self.launch(name, real=real) for name in names]
        until(lambda: all("Registered to:" in (self._folder / f"{name}.log").read_text() for name in names))
        return started

    def launch(self, name: str, *, real: bool = False, code: str = "one", problem: str = "") -> int:
        """Start a worker without waiting for it. A real worker makes real replays."""
        words = [self.address, "--name", name, "--nthreads", "1", "--no-nanny"]
        words += [] if real else ["--preload", __file__]
        variables = {_CODE: code, _SANDBOX: problem}
        process = self._start("worker", *words, name=name, **variables)
        self.workers.append(process)
        return process.pid

    def end_workers(self) -> None:
        """Kill all workers."""
        for process in self.workers:
            process.kill()
            process.wait()
        self.workers.clear()

    def close(self) -> None:
        """Kill everything."""
        self.end_workers()
        self.scheduler.kill()
        self.scheduler.wait()

    def _start(self, kind: str, *words: str, name: str = "scheduler", **variables: str) -> "subprocess.Popen[bytes]":
        with (self._folder / f"{name}.log").open("wb") as said:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    f"distributed.cli.dask_{kind}",
                    *words,
                    "--host",
                    "127.0.0.1",
                    "--no-dashboard",
                ],
                cwd=self._folder,
                env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(self._folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )


def until(true: Callable[[], object]) -> None:
    """Wait until `true` returns a true value."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)


# --- On a worker ---


def description(code: str = "one") -> dict[str, str]:
    """Return the description that a worker reports."""
    return {"code": code, "torch": "2"}


def make(self: Replayer, request: Request) -> Replay:
    """Invent a replay."""
    words = request.source.split()
    if words[0] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if words[0] == "break" and not Path(words[1]).exists():
        Path(words[1]).touch()
        os.environ[_SANDBOX] = BROKEN
    if words[0] == "wait":
        folder = Path(words[1])
        (folder / f"begun-{os.getpid()}-{uuid.uuid4()}").touch()
        until((folder / "go").exists)
    if os.environ.get(_SANDBOX):
        return Replay(status="XX", message="no sandbox")
    if request.settings.dataset == "mnist":
        return Replay(status="OK", log_sha256=b"".join(self.data.files("mnist")).decode())
    return Replay(status="OK", log_sha256=request.source)


def dask_setup(worker: object) -> None:
    """Configure a worker. Dask calls this function."""
    Replayer.make = make  # type: ignore[method-assign]
    vars(cluster).update(
        description=lambda: description(os.environ[_CODE]), sandbox_problem=lambda: os.environ[_SANDBOX]
    )
