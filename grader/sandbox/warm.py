"""Run scripts in sandboxes that have imported their libraries already: one fork for each run."""

import contextlib
import marshal
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from grader.sandbox.bubblewrap import SMALL_BYTES, SMALL_FOLDERS, bwrap_command, launcher_python
from grader.sandbox.launcher import WRITABLE
from grader.sandbox.pipes import SealedFiles, Stopped, StopSignal, open_pipes, passed_on
from grader.sandbox.result import Command, SandboxResult, launcher_limits, pipe_rooms
from grader.sandbox.run import KILLED_FIRST, kill, outcome, read_run, run_in_sandbox
from grader.sandbox.seccomp import filter_program

_HERE = Path(__file__).parent
_SOURCES = ("launcher.py", "warm_process.py")
_EMPTY_SCRIPT = "/launcher/empty.py"
# `-P` keeps a script's own folder off the path, and warm_process imports launcher.py from there.
_BOOT = "import sys; sys.path.append('/launcher'); from warm_process import main; main(int(sys.argv[1]), sys.argv[2])"
_START_SECONDS = 120.0
# How long a launcher may take to end after its results have arrived.
_DONE_SECONDS = 10.0


class WarmFailed(Exception):
    """A warm process does not start on this machine, or does not answer."""


class WarmSandbox:
    """Runs scripts as `run_in_sandbox` does, for one Python, one environment and one set of visible paths.

    `preload` is a script with the imports that all scripts need. Any other command than `python -P script` gets a
    fresh sandbox, and so does every command if no warm process starts here. Many threads may share one object.
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
        # A sandbox dies with the thread that started it; these threads live until `close`.
        self._starters = ThreadPoolExecutor(max_workers=jobs)

    def __call__(self, command: Command, stop: StopSignal | None = None) -> SandboxResult:
        """Run a script; see `run_in_sandbox`."""
        same = command.environment == self._environment and tuple(command.visible) == self._visible
        if not same or command.words[:-1] != [sys.executable, "-P"]:
            return run_in_sandbox(command, stop)
        if stop is not None and stop.is_set():
            raise Stopped
        worker = self._worker()
        if worker is None:
            return run_in_sandbox(command, stop)
        try:
            result = worker.run(command, stop)
        finally:
            if worker.is_ready:
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.kill()
        # XX is our own fault: the warm process may have been killed since its last run.
        return run_in_sandbox(command, stop) if result.status == "XX" else result

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
        """End all warm processes; call it when none of them runs a script."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()
        self._starters.shutdown()


class _Worker:
    """One warm process in its sandbox; `is_ready` says that it waits for a run."""

    def __init__(self, preload: Path, environment: Mapping[str, str], visible: Sequence[Path]) -> None:
        self.is_ready = False
        prefix = Path(sys.base_prefix)
        self._shown = _visible_in_writable(
            [*visible, Path(sys.prefix), prefix, prefix.resolve(), launcher_python()]
        )
        # Not the grader's own output: every run would see the terminal there.
        with os.fdopen(os.memfd_create("output"), "w+b") as output:
            self._start(preload, environment, visible, output.fileno())
            # A first, empty run shows whether one namespace may be created inside another.
            try:
                begun = self._answers(_START_SECONDS)
                first = self.run(Command([_EMPTY_SCRIPT])) if begun else None
            finally:
                if not self.is_ready:
                    self.kill()
            if first is None or first.status != "OK":
                self.kill()
                output.seek(0)
                last_words = output.read().decode("utf-8", "replace").strip()[-500:]
                message = last_words if first is None else first.message
                raise WarmFailed(message or "the warm process ended or hung without a message")

    def _start(
        self, preload: Path, environment: Mapping[str, str], visible: Sequence[Path], output: int
    ) -> None:
        sources = {f"/launcher/{name}": (_HERE / name).read_bytes() for name in _SOURCES}
        with contextlib.ExitStack() as stack:
            files = stack.enter_context(SealedFiles())
            control, theirs = map(stack.enter_context, socket.socketpair())
            ends = os.pipe()
            reading = stack.enter_context(os.fdopen(ends[0], "rb"))
            writing = stack.enter_context(os.fdopen(ends[1], "wb"))
            words = bwrap_command(
                files=sources | {_EMPTY_SCRIPT: b""},
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
                [*KILLED_FIRST, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(*files.descriptors, theirs.fileno(), writing.fileno()),
                env={"PATH": os.defpath},
                process_group=0,
            )
            self._control = control.dup()
            writing.close()
            self._status = reading.readline()

    def run(self, command: Command, stop: StopSignal | None = None) -> SandboxResult:
        """Fork for one run; if the run is cut short, this process is not ready any more."""
        limits = command.limits
        small = [(folder, SMALL_BYTES) for folder in SMALL_FOLDERS]
        job = launcher_limits(limits) | {
            "script": command.words[-1],
            "inputs": dict(command.inputs),
            "writable": [("/scratch", limits.scratch_bytes), *small],
            "shown": self._shown,
            "seccomp": filter_program(platform.machine()),
        }
        self.is_ready = False
        with SealedFiles() as files:
            sent = files.keep(marshal.dumps(job))
            reading, writing = open_pipes("stdout", "stderr", "results")
            # If the process has died since its last run, the results are empty, which says so.
            with passed_on(reading, writing), contextlib.suppress(ConnectionError):
                socket.send_fds(self._control, [b"J"], [sent, *writing.values()])
        readings = read_run(reading, pipe_rooms(limits), limits, stop)
        if readings.complete:
            self._answers(_DONE_SECONDS)
        return outcome(readings, limits)

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return self._process.poll() is None

    def _answers(self, seconds: float) -> bool:
        self._control.settimeout(seconds)
        with contextlib.suppress(OSError):  # too late, or dead
            self.is_ready = self._control.recv(1) != b""
        return self.is_ready

    def kill(self) -> None:
        """End the process and everything in its sandbox."""
        self.is_ready = False
        self._control.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                kill(self._process, self._status)
            self._process.wait()


def _visible_in_writable(paths: Sequence[Path]) -> list[str]:
    """Return the paths that lie in folders which each run gets empty; leave out paths inside another such path."""
    covered = [path for path in paths if any(path.is_relative_to(folder) for folder in WRITABLE)]
    return [
        str(path) for path in dict.fromkeys(covered) if not any(parent in covered for parent in path.parents)
    ]
