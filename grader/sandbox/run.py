"""Runs one command of a stranger's in the sandbox, and brings back how it ended and what it left."""

import contextlib
import json
import marshal
import os
import platform
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.sandbox.bubblewrap import LAUNCHER, arguments, input_files
from grader.sandbox.frames import BrokenFrames, has_ended, parse_frames
from grader.sandbox.mounts import launcher_python
from grader.sandbox.result import MIB, Limits, SandboxResult, Status, rlimits
from grader.sandbox.sealed import SealedFiles
from grader.sandbox.seccomp import filter_program
from grader.sandbox.stop import Stopped, StopSignal
from grader.sandbox.streams import Readings, close_all, open_pipes, read_pipes

LAUNCHER_SOURCE = Path(__file__).with_name("inside.py")
# What the launcher adds to the contents of the files: names, lengths, one sentence.
_FRAME_BYTES = 8 * MIB
_STATUS_BYTES = MIB
# When the machine's own memory is full, the kernel is to take what strangers run before anything else. A process
# may always say so of itself, and all that it starts inherits it.
TAKEN_FIRST = ("/bin/sh", "-c", '{ echo 1000 > /proc/self/oom_score_adj; } 2> /dev/null; exec "$@"', "sh")
_WATCHED = ("cpu_seconds", "memory_bytes", "processes", "file_bytes", "scratch_files", "result_bytes")


def run_in_sandbox(
    command: Sequence[str],
    *,
    inputs: Mapping[str, bytes],
    environment: Mapping[str, str],
    limits: Limits,
    visible: Sequence[Path] = (),
    stdin: bytes = b"",
    stop: StopSignal | None = None,
) -> SandboxResult:
    """Run a command in an empty world under limits, and return how it ended.

    It works in a scratch folder, finds the inputs by their names in `../input/`, and what it writes below
    `out/` comes back. It sees this machine's libraries and the `visible` paths, read-only, and nothing else of
    it; its environment is `environment` alone. All that it started is dead when this returns.

    What the command does never raises. Raises `ValueError` for inputs and paths that are not plain, and `Stopped`
    as soon as `stop` is set, by whatever thread.
    """
    if stop is not None and stop.is_set():
        raise Stopped
    with SealedFiles() as files:
        words = arguments(
            files={LAUNCHER: LAUNCHER_SOURCE.read_bytes(), **input_files(inputs)},
            visible=visible,
            scratch_bytes=limits.scratch_bytes,
            seccomp=filter_program(platform.machine()),
            keep=files.keep,
        )
        job = files.keep(
            marshal.dumps(job_of(limits) | {"command": list(command), "environment": dict(environment)})
        )
        reading, writing = open_pipes("stdout", "stderr", "results", "status")
        words += ["--json-status-fd", str(writing["status"]), "--", str(launcher_python()), "-I", "-S", "-B"]
        words += [LAUNCHER, str(job), str(writing["results"])]
        # A process group of its own: Ctrl-C at the terminal is for the grader, which ends this one. Only its main
        # thread hears of it; whoever waits in another needs `stop`.
        try:
            process = subprocess.Popen(
                [*TAKEN_FIRST, *words],
                stdin=files.keep(stdin),
                stdout=writing["stdout"],
                stderr=writing["stderr"],
                pass_fds=(*files.descriptors, writing["results"], writing["status"]),
                env={"PATH": os.defpath},
                process_group=0,
            )
        except BaseException:
            close_all(reading)
            raise
        finally:
            close_all(writing)
        readings = _watch(process, reading, limits, stop)
    if readings.stopped:
        raise Stopped
    return outcome(readings, limits)


def job_of(limits: Limits) -> dict[str, Any]:
    """Return what a launcher needs to know of the limits."""
    return {
        "rlimits": rlimits(limits) + _process_limit(limits),
        **{name: getattr(limits, name) for name in _WATCHED},
    }


def _process_limit(limits: Limits) -> list[tuple[str, int, int]]:
    # Earlier kernels count the user's processes outside the sandbox as well.
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if release is None or tuple(map(int, release.groups())) < (5, 14):
        return []
    # Twice the number, so that it is the launcher that says what happened. Processes of root are not counted.
    return [("RLIMIT_NPROC", 2 * limits.processes, 2 * limits.processes)]


def rooms(limits: Limits) -> dict[str, tuple[str, int]]:
    """Return how much each pipe may bring, as `read_pipes` has it."""
    return {
        "stdout": ("output", limits.output_bytes),
        "stderr": ("output", limits.output_bytes),
        "results": ("results", limits.result_bytes + _FRAME_BYTES),
    }


def _watch(
    process: subprocess.Popen[bytes], pipes: Mapping[str, int], limits: Limits, stop: StopSignal | None
) -> Readings:
    """Read what the process sends until it is over or over a limit; then nothing of it is left."""
    groups = rooms(limits) | {"status": ("status", _STATUS_BYTES)}
    deadline = time.monotonic() + limits.wall_seconds
    readings = None
    try:
        readings = read_pipes(
            pipes, groups, deadline, ended=lambda sizes: has_ended(sizes["results"]), stop=stop
        )
    finally:
        whole = readings is not None and not (readings.timed_out or readings.overflowed or readings.stopped)
        if process.poll() is None and not whole:
            kill(process, b"" if readings is None else readings.content["status"])
        process.wait()
    return readings


def kill(process: subprocess.Popen[bytes], status: bytes) -> None:
    """End a sandbox; `status` is what bubblewrap has told of its child."""
    # The first process of a namespace takes all others with it, and bubblewrap ends when that is done.
    with contextlib.suppress(ValueError, LookupError, TypeError, ProcessLookupError):
        os.kill(json.loads(status.splitlines()[0])["child-pid"], signal.SIGKILL)
        return
    # Before bubblewrap has told of its child it holds it back, and that child would wait for it for ever; both are
    # in this group. A launcher that starts even now ends at its first word, for which there is no reader.
    os.killpg(process.pid, signal.SIGKILL)


def outcome(readings: Readings, limits: Limits) -> SandboxResult:
    """Return how a run ended, by what its launcher sent."""
    stdout, stderr = readings.content["stdout"], readings.content["stderr"]

    def ended(status: Status, message: str, number: int | None = None) -> SandboxResult:
        return SandboxResult(status, None, number, message, stdout, stderr)

    if readings.overflowed == "output":
        return ended("OL", f"it wrote more than {limits.output_bytes} bytes of output")
    try:
        report = parse_frames(readings.content["results"], limits.result_bytes)
    except BrokenFrames as error:
        return ended("XX", f"the launcher sent nonsense: {error}")
    if not report.started:
        said = stderr.decode("utf-8", "replace").strip()[-500:]
        return ended("XX", f"the sandbox did not start: {said}")
    if readings.timed_out and not report.finished:
        return ended("TO", f"it ran for more than {limits.wall_seconds:g} seconds")
    if not report.finished:
        # Our launcher does not end by itself: what runs beside it, and the memory it takes, is the command's.
        return ended("SG", "the whole sandbox was killed", signal.SIGKILL)
    return SandboxResult(
        report.status, report.exit_code, report.signal, report.message, stdout, stderr, report.files
    )
