"""Run a script without a sandbox, for `--trust-submissions`: in a normal process with limits."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from grader.sandbox.pipes import SandboxStopped, StopSignal, open_pipes, pass_on, read_pipes
from grader.sandbox.result import SandboxCommand, SandboxResult, launcher_limits, pipe_rooms, rlimits
from grader.sandbox.watch import Ending, collect_if_ended, ending_of_code


def run_unsandboxed(command: SandboxCommand, stop: StopSignal | None = None) -> SandboxResult:
    """Run a script as `run_in_sandbox` does, but without a sandbox. Use this only for authors that you trust.

    The script can read the whole machine (`visible` has no effect), and its processes may continue after it ends. The
    limits for processor time and memory hold for each process, the size of each file is limited, and the run ends after
    `wall_seconds`.
    """
    if stop is not None and stop.is_set():
        raise SandboxStopped
    limits, job, begun = command.limits, launcher_limits(command.limits), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True) as name:
        scratch = Path(name, "scratch")
        (scratch / "out").mkdir(parents=True)
        for path, content in command.inputs.items():
            place = Path(name, "input", path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        # The pipe "results" stays open until the process ends, even if the process closes its standard output.
        reading, writing = open_pipes("stdout", "stderr", "results")
        with pass_on(reading, writing):
            process = subprocess.Popen(
                [*command.interpreter.words, command.script],
                cwd=scratch,
                env=dict(command.interpreter.environment),
                stdin=subprocess.DEVNULL,
                stdout=writing["stdout"],
                stderr=writing["stderr"],
                pass_fds=[writing["results"]],
                process_group=0,
            )
        try:
            _limit(process.pid, command)
            readings = read_pipes(reading, pipe_rooms(limits), limits.wall_seconds, stop)
            code = process.wait() if readings.complete else 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if readings.stopped:
            raise SandboxStopped
        ending: Ending = ending_of_code(code)
        if readings.overflowed:
            ending = ("OL", None, None, f"it wrote more than {limits.output_bytes} bytes of output")
        if readings.timed_out:
            ending = ("TO", None, None, f"it ran for more than {limits.wall_seconds:g} seconds")
        ending, files = collect_if_ended(ending, str(scratch), job)
        output = (readings.content["stdout"], readings.content["stderr"])
        return SandboxResult(*ending, *output, dict(files), time.monotonic() - begun)


def _limit(pid: int, command: SandboxCommand) -> None:
    """Set the limits of a process that has just started. Only Linux can set the limits of another process."""
    with contextlib.suppress(OSError, AttributeError):
        for name, soft, hard in rlimits(command.limits):
            number = getattr(resource, name)
            most = resource.prlimit(pid, number)[1]
            given = [value if most < 0 else min(value, most) for value in (soft, hard)]
            resource.prlimit(pid, number, (given[0], given[1]))
        # If the machine runs out of memory, the kernel then kills this process before the grader.
        Path("/proc", str(pid), "oom_score_adj").write_text("1000", encoding="ascii")
