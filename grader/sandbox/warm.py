"""Runs scripts in sandboxes that have imported their libraries beforehand: one process each, which forks for a run."""

import contextlib
import functools
import marshal
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.sandbox.bubblewrap import SMALL_BYTES, SMALL_FOLDERS, arguments, check_input_name
from grader.sandbox.frames import has_ended
from grader.sandbox.inside import WRITABLE
from grader.sandbox.mounts import launcher_python
from grader.sandbox.result import Limits, SandboxResult
from grader.sandbox.run import TAKEN_FIRST, job_of, kill, outcome, rooms, run_in_sandbox
from grader.sandbox.sealed import SealedFiles
from grader.sandbox.seccomp import filter_program
from grader.sandbox.stop import Stopped, StopSignal
from grader.sandbox.streams import close_all, open_pipes, read_pipes

_HERE = Path(__file__).parent
_SOURCES = ("inside.py", "as_script.py", "warm_inside.py")
_NOTHING = "/launcher/nothing.py"
_START_SECONDS = 120.0
# What is left of a run when its results are here: the launcher's own end.
_DONE_SECONDS = 10.0


class WarmFailed(Exception):
    """A warm process does not start here, or does not answer."""


class WarmSandbox:
    """As `run_in_sandbox`, for scripts of one Python with one environment and one sight of this machine.

    `preload` is a script that imports what the others do. Commands other than `python -P script`, and all of them
    where a warm process does not start, have a sandbox of their own. Any number of threads may share it.
    """

    def __init__(
        self, preload: Path, environment: Mapping[str, str], visible: Sequence[Path], *, jobs: int
    ) -> None:
        self._preload = preload
        self._environment = dict(environment)
        self._visible = tuple(visible)
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self.failure = ""  # why no warm process starts here
        # A sandbox ends with the thread that started it; these stay until `close`.
        self._starters = ThreadPoolExecutor(max_workers=jobs)

    def __call__(
        self,
        command: Sequence[str],
        *,
        inputs: Mapping[str, bytes],
        environment: Mapping[str, str],
        limits: Limits,
        visible: Sequence[Path] = (),
        stdin: bytes = b"",
        stop: StopSignal | None = None,
    ) -> SandboxResult:
        """Run a script; see `run_in_sandbox`."""
        fresh = functools.partial(
            run_in_sandbox,
            command,
            inputs=inputs,
            environment=environment,
            limits=limits,
            visible=visible,
            stdin=stdin,
            stop=stop,
        )
        same = environment == self._environment and tuple(visible) == self._visible
        if not same or command[:-1] != [sys.executable, "-P"]:
            return fresh()
        if stop is not None and stop.is_set():
            raise Stopped
        for name in inputs:
            check_input_name(name)
        worker = self._worker()
        if worker is None:
            return fresh()
        try:
            result = worker.run(command[-1], inputs, limits, stdin, stop)
        finally:
            if worker.is_ready():
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.kill()
        # Our own fault: perhaps that of a process which somebody killed since its last run.
        return fresh() if result.status == "XX" else result

    def _worker(self) -> "_Worker | None":
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.kill()
            if self.failure:
                return None
        try:
            return self._starters.submit(_Worker, self._preload, self._environment, self._visible).result()
        except WarmFailed as error:
            self.failure = str(error)
            return None

    def close(self) -> None:
        """End the warm processes; none runs anything any more."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
        self._starters.shutdown()


class _Worker:
    """One warm process in its sandbox."""

    def __init__(self, preload: Path, environment: Mapping[str, str], visible: Sequence[Path]) -> None:
        self._ready = False
        prefix = Path(sys.base_prefix)
        self._shown = _shown_in_writable(
            [*visible, Path(sys.prefix), prefix, prefix.resolve(), launcher_python()]
        )
        # Not the grader's own output: a terminal there would be seen by every run.
        with os.fdopen(os.memfd_create("said"), "w+b") as said:
            self._start(preload, environment, visible, said.fileno())
            # Whether a namespace can be taken inside another is seen by doing it.
            try:
                begun = self._answers(_START_SECONDS)
                first = self.run(_NOTHING, {}, Limits(), b"", None) if begun else None
            finally:
                if not self._ready:
                    self.kill()
            if first is None or first.status != "OK":
                self.kill()
                said.seek(0)
                words = said.read().decode("utf-8", "replace").strip()[-500:]
                message = words if first is None else first.message
                raise WarmFailed(message or "it ended, or was silent, and said nothing")

    def _start(
        self, preload: Path, environment: Mapping[str, str], visible: Sequence[Path], said: int
    ) -> None:
        with contextlib.ExitStack() as stack:
            files = stack.enter_context(SealedFiles())
            line, theirs = map(stack.enter_context, socket.socketpair())
            ends = os.pipe()
            reading = stack.enter_context(os.fdopen(ends[0], "rb"))
            writing = stack.enter_context(os.fdopen(ends[1], "wb"))
            words = arguments(
                files={f"/launcher/{name}": (_HERE / name).read_bytes() for name in _SOURCES}
                | {_NOTHING: b""},
                visible=visible,
                scratch_bytes=SMALL_BYTES,
                seccomp=None,
                keep=files.keep,
            )
            for name, value in environment.items():
                words += ["--setenv", name, value]
            words += ["--json-status-fd", str(writing.fileno()), "--", sys.executable, "-P"]
            words += ["-c", _BOOT, str(theirs.fileno()), str(preload)]
            self._process = subprocess.Popen(
                [*TAKEN_FIRST, *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=(*files.descriptors, theirs.fileno(), writing.fileno()),
                env={"PATH": os.defpath},
                process_group=0,
            )
            self._line = line.dup()
            writing.close()
            self._status = reading.readline()

    def run(
        self, script: str, inputs: Mapping[str, bytes], limits: Limits, stdin: bytes, stop: StopSignal | None
    ) -> SandboxResult:
        """Fork for one run; where anything ends that before its end, this process is not ready any more."""
        job = job_of(limits) | {
            "script": script,
            "inputs": dict(inputs),
            "writable": [
                ("/scratch", limits.scratch_bytes),
                *((folder, SMALL_BYTES) for folder in SMALL_FOLDERS),
            ],
            "shown": self._shown,
            "seccomp": filter_program(platform.machine()),
        }
        self._ready = False
        with SealedFiles() as files:
            sent = [files.keep(marshal.dumps(job)), files.keep(stdin)]
            reading, writing = open_pipes("stdout", "stderr", "results")
            try:
                socket.send_fds(self._line, [b"J"], [*sent, *writing.values()])
            except ConnectionError:
                pass  # it has died since, and sends no results, which says so
            except BaseException:
                close_all(reading)
                raise
            finally:
                close_all(writing)
        readings = read_pipes(
            reading,
            rooms(limits),
            time.monotonic() + limits.wall_seconds,
            ended=lambda sizes: has_ended(sizes["results"]),
            stop=stop,
        )
        if readings.stopped:
            raise Stopped
        if not (readings.timed_out or readings.overflowed):
            self._answers(_DONE_SECONDS)
        return outcome(readings, limits)

    def is_alive(self) -> bool:
        """Say whether it still waits at the other end of the line."""
        return self._process.poll() is None

    def is_ready(self) -> bool:
        """Say whether it waits for another run."""
        return self._ready

    def _answers(self, seconds: float) -> bool:
        self._line.settimeout(seconds)
        with contextlib.suppress(OSError):  # too late, or dead
            self._ready = self._line.recv(1) != b""
        return self._ready

    def kill(self) -> None:
        """End it, and whatever runs in its sandbox."""
        self._ready = False
        self._line.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                kill(self._process, self._status)
            self._process.wait()


def _shown_in_writable(paths: Sequence[Path]) -> list[str]:
    """Return what of these lies in folders that each run has anew, without what lies in another of these."""
    anew = [path for path in paths if any(path.is_relative_to(folder) for folder in WRITABLE)]
    return [str(path) for path in dict.fromkeys(anew) if not any(parent in anew for parent in path.parents)]


# `-P` keeps a script's own folder off the path, and this one imports its neighbour from there.
_BOOT = "import sys; sys.path.append('/launcher'); import warm_inside; warm_inside.main(int(sys.argv[1]), sys.argv[2])"
