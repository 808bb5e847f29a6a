"""Run scripts in sandboxes: start worker processes in bubblewrap, send them scripts, and read the results."""

import contextlib
import json
import marshal
import os
import platform
import selectors
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from grader.sandbox.bubblewrap import (
    OLDEST_BWRAP,
    SMALL_BYTES,
    SMALL_FOLDERS,
    base_python,
    bwrap_command,
    bwrap_version,
    plain_path,
)
from grader.sandbox.pipes import MemoryFiles, Readings, SandboxStopped, StopSignal, open_pipes, pass_on, read_pipes
from grader.sandbox.result import (
    MIB,
    BrokenReport,
    Interpreter,
    Limits,
    SandboxCommand,
    SandboxResult,
    has_ended,
    has_started,
    launcher_limits,
    parse_report,
    pipe_rooms,
)
from grader.sandbox.seccomp import ARCHITECTURES, filter_program
from grader.sandbox.watch import SCRATCH, WRITABLE, RunStatus

_HERE = Path(__file__).parent
_SOURCES = ("worker.py", "watch.py")
_EMPTY_SCRIPT = Path("/worker/empty.py")
# With the option `-P`, Python does not look for modules in the folder of the script. So add the folder of worker.py,
# which imports watch.py.
_BOOT = (
    "import sys; sys.path.append('/worker'); from worker import main;"
    " main(int(sys.argv[1]), sys.argv[2], forks=sys.argv[3] == 'forks')"
)
# This command makes the kernel kill sandboxed processes first if the machine runs out of memory. A process may request
# this for itself, and its children inherit the setting.
_KILLED_FIRST = ("/bin/sh", "-c", '{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null; exec "$@"', "sh")
_START_SECONDS = 120.0
_INSTALL = "install the package bubblewrap (sudo apt-get install bubblewrap; also in dnf, zypper, pacman and apk)."
_TRIAL_LIMITS = Limits(seconds=10, memory_bytes=256 * MIB, scratch_bytes=MIB)
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


class NotStarted(Exception):
    """Raised if a worker does not start on this machine."""


def run_in_sandbox(command: SandboxCommand, stop: StopSignal | None = None) -> SandboxResult:
    """Run a script in a new worker, and return the result. Every process of the run is dead when this function returns.

    A script cannot make this function raise an exception. Raises `ValueError` for a visible path that is not absolute,
    and `SandboxStopped` as soon as any thread sets `stop`.
    """
    try:
        worker = Worker(command.interpreter, once=command, stop=stop)
    except NotStarted as error:
        return SandboxResult("XX", message=f"the sandbox did not start: {error}")
    with contextlib.closing(worker):
        return worker.run(command, stop)


class ForkingSandbox:
    """Runs scripts as `run_in_sandbox` does, but in workers that fork for each run and live until `close` is called.

    If no such worker starts on this machine, each run gets a new worker, and `failure` says why. At most `jobs` threads
    may use one object at the same time.
    """

    def __init__(self, jobs: int) -> None:
        self.failure = ""
        self._idle: list[Worker] = []
        self._lock = threading.Lock()
        # A sandbox dies with the thread that started it. So start sandboxes in threads that live until `close`.
        self._starters = ThreadPoolExecutor(max_workers=jobs)

    def __call__(self, command: SandboxCommand, stop: StopSignal | None = None) -> SandboxResult:
        """Run a script, and return the result; see `run_in_sandbox`."""
        worker = self._worker(command.interpreter, stop)
        if worker is None:
            return run_in_sandbox(command, stop)
        try:
            result = worker.run(command, stop)
        finally:
            if worker.is_ready:
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.close()
        # The status XX may be a fault of the worker, for example if it was killed after its last run. So try a new
        # worker.
        return run_in_sandbox(command, stop) if result.status == "XX" else result

    def _worker(self, interpreter: Interpreter, stop: StopSignal | None) -> "Worker | None":
        with self._lock:
            for worker in [worker for worker in self._idle if not worker.is_alive()]:
                self._idle.remove(worker)
                worker.close()
            for worker in self._idle:
                if worker.interpreter == interpreter:
                    self._idle.remove(worker)
                    return worker
            if self.failure:
                return None
        try:
            return self._starters.submit(Worker, interpreter, stop=stop).result()
        except NotStarted as error:
            self.failure = str(error)
            return None

    def close(self) -> None:
        """End all workers. Call this when no worker runs a script."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.close()
        self._starters.shutdown()


class Worker:
    """A worker process in its sandbox (`worker.py`). It forks for each run or, if `once` is given, makes only this run.

    is_ready: whether the worker waits for a run.
    Raises `NotStarted`, `SandboxStopped`, and `ValueError` for a visible path that is not absolute.
    """

    def __init__(
        self, interpreter: Interpreter, once: SandboxCommand | None = None, stop: StopSignal | None = None
    ) -> None:
        if stop is not None and stop.is_set():
            raise SandboxStopped
        self.interpreter = interpreter
        self.is_ready = False
        self._once = once
        # Do not let the worker inherit the grader's output, because every run could then use the grader's terminal.
        with os.fdopen(os.memfd_create("output"), "w+b") as output:
            self._start(output.fileno())
            try:
                begun = self._hears(_START_SECONDS, stop)
                # Make an empty run first, to see whether this machine allows nested namespaces.
                first = None if once or not begun else self.run(SandboxCommand(_EMPTY_SCRIPT, interpreter))
                if not self.is_ready or (first is not None and first.status != "OK"):
                    output.seek(0)
                    last_words = output.read().decode("utf-8", "replace").strip()[-500:]
                    message = last_words or (first.message if first else "")
                    status = self._process.poll()
                    raise NotStarted(message or f"the worker ended or hung without a message (exit status {status})")
            except BaseException:
                self.close()
                raise

    def _start(self, output: int) -> None:
        files = {f"/worker/{name}": (_HERE / name).read_bytes() for name in _SOURCES} | {str(_EMPTY_SCRIPT): b""}
        once, interpreter = self._once, self.interpreter
        if once is not None:
            files |= {f"/input/{name}": content for name, content in once.inputs.items()}
        with contextlib.ExitStack() as stack:
            kept = stack.enter_context(MemoryFiles())
            words = bwrap_command(
                files=files,
                visible=interpreter.visible,
                scratch_bytes=SMALL_BYTES if once is None else once.limits.scratch_bytes,
                nested=once is None,
                keep=kept.keep,
            )
            control, theirs = map(stack.enter_context, socket.socketpair())
            reading, writing = open_pipes("status")
            for name, value in interpreter.environment.items():
                words += ["--setenv", name, value]
            words += ["--json-status-fd", str(writing["status"]), "--", *map(str, interpreter.words)]
            words += ["-c", _BOOT, str(theirs.fileno()), str(interpreter.preload or "")]
            # In a new process group, the worker does not receive Ctrl-C from the terminal. The grader's main thread
            # receives Ctrl-C and stops the other threads through `stop`.
            with pass_on(reading, writing):
                self._process = subprocess.Popen(
                    [*_KILLED_FIRST, *words, "forks" if once is None else "once"],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(*kept.descriptors, theirs.fileno(), writing["status"]),
                    env={"PATH": os.defpath},
                    process_group=0,
                )
            self._control = control.dup()
            with os.fdopen(reading["status"], "rb") as status:
                self._status = status.readline()

    def run(self, command: SandboxCommand, stop: StopSignal | None = None) -> SandboxResult:
        """Make a run, and return the result. If the run is interrupted, this worker cannot make further runs."""
        limits = command.limits
        job = launcher_limits(limits) | {
            "script": str(command.script),
            "inputs": [(name, len(content)) for name, content in command.inputs.items()],
            "writable": [(SCRATCH, limits.scratch_bytes), *((folder, SMALL_BYTES) for folder in SMALL_FOLDERS)],
            "shown": self._visible_in_writable,
            "seccomp": filter_program(platform.machine()),
        }
        self.is_ready = False
        described = marshal.dumps(job)
        with MemoryFiles() as files:
            sent = files.keep(described, *command.inputs.values())
            reading, writing = open_pipes("stdout", "stderr", "results")
            # If the worker has died since its last run, the results are empty, and `_outcome` reports its death.
            with pass_on(reading, writing), contextlib.suppress(ConnectionError):
                socket.send_fds(self._control, [b"%d" % len(described)], [sent, *writing.values()])
        readings = read_pipes(reading, pipe_rooms(limits), limits.wall_seconds, stop)
        # If the worker is not ready, processes of the run may still exist. `close` ends them.
        self.is_ready = readings.complete and has_ended(readings.content["results"])
        return _outcome(readings, limits)

    @cached_property
    def _visible_in_writable(self) -> list[str]:
        """Return the visible paths inside the writable folders, without a path that is inside another returned path."""
        prefix = Path(sys.base_prefix)
        paths = [plain_path(path) for path in (*self.interpreter.visible, prefix, prefix.resolve(), base_python())]
        covered = [path for path in paths if any(path.is_relative_to(folder) for folder in WRITABLE)]
        return [str(path) for path in dict.fromkeys(covered) if not any(parent in covered for parent in path.parents)]

    def is_alive(self) -> bool:
        """Return whether the worker still runs."""
        return self._process.poll() is None

    def _hears(self, seconds: float, stop: StopSignal | None = None) -> bool:
        """Wait until the worker reports that it is ready, and return whether it did so. Raises `SandboxStopped`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            if stop is not None:
                selector.register(stop, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select(seconds)]
        if stop in ready and stop is not None:
            raise SandboxStopped
        with contextlib.suppress(OSError):  # the worker is dead
            self.is_ready = ready != [] and self._control.recv(1) != b""
        return self.is_ready

    def close(self) -> None:
        """End the worker and everything in its sandbox."""
        self.is_ready = False
        self._control.close()
        if self.is_alive():
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        # If process 1 of a namespace dies, the kernel kills all other processes in the namespace, and bubblewrap ends.
        with contextlib.suppress(ValueError, LookupError, TypeError, ProcessLookupError):
            os.kill(json.loads(self._status)["child-pid"], signal.SIGKILL)
            return
        # Until bubblewrap has reported its child process, the child waits for bubblewrap. Both are in this process
        # group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _outcome(readings: Readings, limits: Limits) -> SandboxResult:
    """Return the result of a run from the bytes in its pipes. Raises `SandboxStopped` if the reading was stopped."""
    if readings.stopped:
        raise SandboxStopped
    stdout, stderr = readings.content["stdout"], readings.content["stderr"]

    def result_of(status: RunStatus, message: str, number: int | None = None) -> SandboxResult:
        return SandboxResult(status, None, number, message, stdout, stderr)

    if readings.overflowed in ("stdout", "stderr"):
        return result_of("OL", f"it wrote more than {limits.output_bytes} bytes of output")
    try:
        report = parse_report(readings.content["results"], limits.result_bytes)
    except BrokenReport as error:
        return result_of("XX", f"the launcher sent an invalid report: {error}")
    if report is not None:
        return replace(report, stdout=stdout, stderr=stderr)
    if not has_started(readings.content["results"]):
        last_words = stderr.decode("utf-8", "replace").strip()[-500:]
        return result_of("XX", f"the sandbox did not start: {last_words}")
    if readings.timed_out:
        # The run used less time than its limit, so it has waited for the machine.
        return result_of("XX", f"this machine is too busy: the run did not end within {limits.wall_seconds:g} seconds")
    # The launcher does not die by itself, so the run has used up the memory or the number of processes.
    return result_of("SG", "the whole sandbox was killed", signal.SIGKILL)


def sandbox_problem() -> str | None:
    """Return None if a sandbox starts on this machine, otherwise a sentence with the problem and the remedy."""
    if sys.platform != "linux":
        return f"The sandbox needs Linux, but this is {platform.system()}: use Linux, perhaps in a virtual machine."
    if platform.machine() not in ARCHITECTURES:
        return (
            f"The sandbox has no filter for {platform.machine()} processors: use a machine with one of these:"
            f" {', '.join(ARCHITECTURES)}."
        )
    installed = bwrap_version()
    if installed is None:
        return f"The sandbox needs bubblewrap, which is not installed: {_INSTALL}"
    if installed < OLDEST_BWRAP:
        found, needed = (".".join(map(str, numbers)) for numbers in (installed, OLDEST_BWRAP))
        return f"The sandbox needs bubblewrap {needed} or later, but this is {found}: {_INSTALL}"
    plain = Interpreter((str(base_python()), "-I", "-S"))
    result = run_in_sandbox(SandboxCommand(_EMPTY_SCRIPT, plain, limits=_TRIAL_LIMITS))
    if result.status == "OK":
        return None
    message = f"bubblewrap is installed, but a sandbox does not start on this machine ({result.message}): "
    if _APPARMOR.exists() and _APPARMOR.read_text().strip() == "1":
        return message + "allow it with sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0."
    return (
        message + "allow user namespaces (sudo sysctl user.max_user_namespaces=15000); in a container such as Docker,"
        " start it with --privileged."
    )


def nested_problem() -> str | None:
    """Return None if a sandboxed process can create namespaces for each run, otherwise a sentence with the reason."""
    try:
        Worker(Interpreter((str(base_python()), "-I", "-S"))).close()
    except NotStarted as error:
        return str(error)
    return None
