"""Run a command without a sandbox, as `--trust-submissions` asks: a plain process with limits."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader.sandbox.bubblewrap import launcher_python
from grader.sandbox.inside import TooMuch, collect, ending_of, largest_file
from grader.sandbox.pipes import Readings, Stopped, StopSignal, open_pipes, passed_on, read_pipes
from grader.sandbox.result import Limits, SandboxResult, check_input_names, rlimits

_POLL_SECONDS = 0.05
_LAUNCHER = Path(__file__).with_name("inside.py")


def run_trusted(
    command: Sequence[str],
    *,
    inputs: Mapping[str, bytes],
    environment: Mapping[str, str],
    limits: Limits,
    visible: Sequence[Path] = (),
    stdin: bytes = b"",
    stop: StopSignal | None = None,
) -> SandboxResult:
    """Run a command of a trusted author as `run_in_sandbox` does, but without a sandbox.

    The command has the same folders, sees the whole machine (`visible` has no effect), and can leave processes
    behind if it wants to. Processor time and memory are limited for each process, the scratch folder by the size of
    each file. Raises what `run_in_sandbox` raises.
    """
    if stop is not None and stop.is_set():
        raise Stopped
    check_input_names(inputs)
    with tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / "scratch" / "out").mkdir(parents=True)
        (place / "input").mkdir()
        for path, content in inputs.items():
            (place / "input" / path).parent.mkdir(parents=True, exist_ok=True)
            (place / "input" / path).write_bytes(content)
        (place / "stdin").write_bytes(stdin)
        python = [str(launcher_python()), "-I", "-S", "-B", str(_LAUNCHER), "limited"]
        reading, writing = open_pipes("stdout", "stderr")
        with (place / "stdin").open("rb") as source, passed_on(reading, writing):
            process = subprocess.Popen(
                [*python, json.dumps(rlimits(limits)), *command],
                cwd=place / "scratch",
                env=dict(environment),
                stdin=source,
                stdout=writing["stdout"],
                stderr=writing["stderr"],
                process_group=0,
            )
        readings = _watch(process, reading, limits, stop)
        if readings.stopped:
            raise Stopped
        return _outcome(process.returncode, readings, limits, place / "scratch")


def _watch(
    process: subprocess.Popen[bytes], pipes: Mapping[str, int], limits: Limits, stop: StopSignal | None
) -> Readings:
    groups = dict.fromkeys(pipes, ("output", limits.output_bytes))
    deadline = time.monotonic() + limits.wall_seconds
    try:
        readings = read_pipes(pipes, groups, deadline, stop=stop)
        # A process may close its output long before it ends.
        while readings.complete and process.poll() is None:
            if stop is not None and stop.is_set():
                return replace(readings, stopped=True)
            if time.monotonic() > deadline:
                return replace(readings, timed_out=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
        return readings
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _outcome(code: int, readings: Readings, limits: Limits, scratch: Path) -> SandboxResult:
    stdout, stderr = readings.content["stdout"], readings.content["stderr"]
    if readings.overflowed is not None:
        message = f"it wrote more than {limits.output_bytes} bytes of output"
        return SandboxResult("OL", message=message, stdout=stdout, stderr=stderr)
    if readings.timed_out:
        message = f"it ran for more than {limits.wall_seconds:g} seconds"
        return SandboxResult("TO", message=message, stdout=stdout, stderr=stderr)
    too_large = code > 0 and largest_file(str(scratch), limits.scratch_files) >= limits.file_bytes
    status, exit_code, number, message = ending_of(code, too_large)
    files: dict[str, bytes] = {}
    if status in ("OK", "RE", "SG"):
        try:
            files = dict(collect(str(scratch / "out"), limits.scratch_files, limits.result_bytes))
        except TooMuch as excess:
            status, message = "OL", str(excess)
    return SandboxResult(status, exit_code, number, message, stdout, stderr, files)
