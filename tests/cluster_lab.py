"""A cluster on this machine: a scheduler and workers, each a process of its own, that tests may kill."""

import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 240  # seconds: machines that test many things at a time are slow
STAND_IN = Path(__file__).with_name("cluster_stand_in.py")


class Lab:
    """The processes of one cluster, whose output lies in `folder`."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--no-jupyter", bare=bare)
        said = self._folder / "scheduler.log"
        until(lambda: "Scheduler at:" in said.read_text())
        self.address = re.findall(r"Scheduler at:\s+(\S+)", said.read_text())[0]
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, *names: str, stand_in: bool = True, bare: bool = False) -> list[int]:
        """Start workers that nothing replaces when they die, wait for them, and return their processes."""
        started = [self.launch(name, stand_in=stand_in, bare=bare) for name in names]
        until(lambda: all("Registered to:" in (self._folder / f"{name}.log").read_text() for name in names))
        return started

    def launch(
        self, name: str, *, stand_in: bool = True, bare: bool = False, threads: int = 1, **variables: str
    ) -> int:
        """Start a worker and do not wait for it; a bare one has Dask, and no trainwreck."""
        words = ["--name", name, "--nthreads", str(threads), "--no-nanny", "--no-dashboard"]
        if stand_in and not bare:
            words += ["--preload", str(STAND_IN)]
        process = self._start("worker", self.address, *words, name=name, bare=bare, **variables)
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
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(
        self, kind: str, *words: str, name: str = "scheduler", bare: bool = False, **variables: str
    ) -> "subprocess.Popen[bytes]":
        python = [sys.executable, "-P"]
        if bare:  # trainwreck is found by a .pth file, which -S leaves unread
            python.append("-S")
            variables["PYTHONPATH"] = sysconfig.get_path("purelib")
        with (self._folder / f"{name}.log").open("wb") as said:
            process = subprocess.Popen(
                [*python, "-m", f"distributed.cli.dask_{kind}", *words, "--host", "127.0.0.1"],
                cwd=self._folder,
                env={**os.environ, "DASK_TEMPORARY_DIRECTORY": str(self._folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        self._processes.append(process)
        return process


@contextmanager
def cluster(folder: Path, *, bare: bool = False) -> Iterator[Lab]:
    """Give a cluster that ends with the block; the scheduler of a bare one has no trainwreck."""
    lab = Lab(folder, bare=bare)
    try:
        yield lab
    finally:
        lab.close()


def until(true: Callable[[], object]) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.05)
