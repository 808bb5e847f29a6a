"""Run one untrusted command in the sandbox, and say whether the sandbox works on this machine."""

import contextlib
import json
import marshal
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from grader.sandbox.bubblewrap import LAUNCHER, OLDEST_BWRAP, bwrap_command, bwrap_version, launcher_python
from grader.sandbox.pipes import (
    Readings,
    SealedFiles,
    Stopped,
    StopSignal,
    open_pipes,
    passed_on,
    read_pipes,
)
from grader.sandbox.result import (
    MIB,
    BrokenReport,
    Command,
    Limits,
    SandboxResult,
    Status,
    has_ended,
    has_started,
    launcher_limits,
    parse_report,
    pipe_rooms,
)
from grader.sandbox.seccomp import ARCHITECTURES, filter_program

LAUNCHER_SOURCE = Path(__file__).with_name("launcher.py")
_STATUS_BYTES = MIB
# If the machine runs out of memory, the kernel kills sandboxed processes first. A process may always ask for this,
# and its children inherit it.
KILLED_FIRST = ("/bin/sh", "-c", '{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null; exec "$@"', "sh")
_INSTALL = "install the package bubblewrap (sudo apt-get install bubblewrap; dnf, zypper, pacman and apk have it too)."
_TRIAL_LIMITS = Limits(cpu_seconds=10, wall_seconds=30, memory_bytes=256 * MIB, scratch_bytes=MIB)
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def run_in_sandbox(command: Command, stop: StopSignal | None = None) -> SandboxResult:
    """Run a command in a sandbox of its own. When this function returns, every process of the run is dead.

    The command itself never makes this raise. Raises `ValueError` for a visible path that is not absolute, and
    `Stopped` as soon as any thread sets `stop`.
    """
    if stop is not None and stop.is_set():
        raise Stopped
    limits = command.limits
    with SealedFiles() as files:
        words = bwrap_command(
            files={LAUNCHER: LAUNCHER_SOURCE.read_bytes()}
            | {f"/input/{name}": content for name, content in command.inputs.items()},
            visible=command.visible,
            scratch_bytes=limits.scratch_bytes,
            seccomp=filter_program(platform.machine()),
            keep=files.keep,
        )
        job = {
            "command": list(command.words),
            "environment": dict(command.environment),
            **launcher_limits(limits),
        }
        job_file = files.keep(marshal.dumps(job))
        reading, writing = open_pipes("stdout", "stderr", "results", "status")
        words += ["--json-status-fd", str(writing["status"]), "--", str(launcher_python()), "-I", "-S", "-B"]
        words += [LAUNCHER, str(job_file), str(writing["results"])]
        with passed_on(reading, writing):
            # With a process group of its own it does not receive Ctrl-C from the terminal. The grader's main thread
            # does, and the other threads learn of it through `stop`.
            process = subprocess.Popen(
                [*KILLED_FIRST, *words],
                stdin=subprocess.DEVNULL,
                stdout=writing["stdout"],
                stderr=writing["stderr"],
                pass_fds=(*files.descriptors, writing["results"], writing["status"]),
                env={"PATH": os.defpath},
                process_group=0,
            )
        readings = _watch(process, reading, limits, stop)
    return outcome(readings, limits)


def _watch(
    process: subprocess.Popen[bytes], pipes: Mapping[str, int], limits: Limits, stop: StopSignal | None
) -> Readings:
    """Read the pipes until the process ends or exceeds a limit; then make sure that it is dead."""
    rooms = pipe_rooms(limits) | {"status": _STATUS_BYTES}
    readings = None
    try:
        readings = read_run(pipes, rooms, limits, stop)
    finally:
        # Even if bubblewrap has ended: it dies when it reports its child to a pipe that is closed by now, and leaves
        # the child waiting for it.
        if readings is None or not readings.complete:
            kill(process, b"" if readings is None else readings.content["status"])
        process.wait()
    return readings


def read_run(
    pipes: Mapping[str, int], rooms: Mapping[str, int], limits: Limits, stop: StopSignal | None
) -> Readings:
    """Read the pipes of a run that starts now, until its end or a limit."""
    deadline = time.monotonic() + limits.wall_seconds
    return read_pipes(pipes, rooms, deadline, ended=lambda sizes: has_ended(sizes["results"]), stop=stop)


def kill(process: subprocess.Popen[bytes], status: bytes) -> None:
    """Kill a sandbox whose bubblewrap nobody has waited for; `status` is what it has reported about its child."""
    # When process 1 of a namespace dies, the kernel kills the rest, and bubblewrap ends.
    with contextlib.suppress(ValueError, LookupError, TypeError, ProcessLookupError):
        os.kill(json.loads(status.splitlines()[0])["child-pid"], signal.SIGKILL)
        return
    # Before bubblewrap reports its child, that child waits for bubblewrap; both are in this process group. A launcher
    # that starts even now dies when it writes to a pipe that nobody reads.
    os.killpg(process.pid, signal.SIGKILL)


def outcome(readings: Readings, limits: Limits) -> SandboxResult:
    """Return how a run ended, from what its pipes brought. Raises `Stopped` if the reading was stopped."""
    if readings.stopped:
        raise Stopped
    stdout, stderr = readings.content["stdout"], readings.content["stderr"]

    def ended(status: Status, message: str, number: int | None = None) -> SandboxResult:
        return SandboxResult(status, None, number, message, stdout, stderr)

    if readings.overflowed in ("stdout", "stderr"):
        return ended("OL", f"it wrote more than {limits.output_bytes} bytes of output")
    try:
        report = parse_report(readings.content["results"], limits.result_bytes)
    except BrokenReport as error:
        return ended("XX", f"the launcher sent a broken report: {error}")
    if report is not None:
        return replace(report, stdout=stdout, stderr=stderr)
    if not has_started(readings.content["results"]):
        last_words = stderr.decode("utf-8", "replace").strip()[-500:]
        return ended("XX", f"the sandbox did not start: {last_words}")
    if readings.timed_out:
        return ended("TO", f"it ran for more than {limits.wall_seconds:g} seconds")
    # Our launcher does not die by itself: the command used up the memory or the processes.
    return ended("SG", "the whole sandbox was killed", signal.SIGKILL)


def sandbox_problem() -> str | None:
    """Return None if a sandbox starts on this machine, else a sentence that says why not and what to do."""
    if sys.platform != "linux":
        return f"The sandbox needs Linux and this is {platform.system()}: grade on a Linux machine, virtual or real."
    if platform.machine() not in ARCHITECTURES:
        return (
            f"The sandbox has no filter for {platform.machine()} processors: grade on one of"
            f" {', '.join(ARCHITECTURES)}."
        )
    installed = bwrap_version()
    if installed is None:
        return f"The sandbox needs bubblewrap, which is not installed: {_INSTALL}"
    if installed < OLDEST_BWRAP:
        found, needed = (".".join(map(str, numbers)) for numbers in (installed, OLDEST_BWRAP))
        return f"The sandbox needs bubblewrap {needed} or later, and this is {found}: {_INSTALL}"
    words = [str(launcher_python()), "-I", "-S", "-c", "print('ready')"]
    result = run_in_sandbox(Command(words, limits=_TRIAL_LIMITS))
    if result.status == "OK" and result.stdout == b"ready\n":
        return None
    message = f"bubblewrap is installed, but a sandbox does not start here ({result.message}): "
    if _APPARMOR.exists() and _APPARMOR.read_text().strip() == "1":
        return message + "allow it with sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0."
    return (
        message
        + "allow user namespaces (sudo sysctl user.max_user_namespaces=15000); in a container such as Docker,"
        " start it with --privileged."
    )
