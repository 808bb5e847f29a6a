"""Run a command without a sandbox, as `--trust-submissions` asks: a plain process with limits."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from grader.sandbox.bubblewrap import launcher_python
from grader.sandbox.launcher import TooMuch, collect, ending_of, largest_file
from grader.sandbox.pipes import Stopped, StopSignal
from grader.sandbox.result import Command, SandboxResult, rlimits

_POLL_SECONDS = 0.05
_LAUNCHER = Path(__file__).with_name("launcher.py")


def run_unsandboxed(command: Command, stop: StopSignal | None = None) -> SandboxResult:
    """Run a command as `run_in_sandbox` does, but without a sandbox: only for authors that you trust.

    The command sees the whole machine (`visible` has no effect), and can leave processes behind if it wants to.
    Processor time and memory are limited for each process, the scratch folder by the size of each file.
    """
    if stop is not None and stop.is_set():
        raise Stopped
    limits = command.limits
    with tempfile.TemporaryDirectory(prefix="grader-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / "scratch" / "out").mkdir(parents=True)
        (place / "input").mkdir()
        for path, content in command.inputs.items():
            (place / "input" / path).parent.mkdir(parents=True, exist_ok=True)
            (place / "input" / path).write_bytes(content)
        outputs = (place / "stdout", place / "stderr")
        python = [str(launcher_python()), "-I", "-S", "-B", str(_LAUNCHER), "limited"]
        with outputs[0].open("wb") as stdout, outputs[1].open("wb") as stderr:
            process = subprocess.Popen(
                [*python, json.dumps(rlimits(limits)), *command.words],
                cwd=place / "scratch",
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                process_group=0,
            )
        deadline = time.monotonic() + limits.wall_seconds
        try:
            while process.poll() is None and time.monotonic() < deadline and not _too_much(outputs, command):
                if stop is not None and stop.is_set():
                    raise Stopped
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
            code = process.returncode
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _outcome(code, outputs, command, place / "scratch")


def _too_much(outputs: tuple[Path, Path], command: Command) -> bool:
    return any(path.stat().st_size > command.limits.output_bytes for path in outputs)


def _outcome(code: int | None, outputs: tuple[Path, Path], command: Command, scratch: Path) -> SandboxResult:
    limits = command.limits
    stdout, stderr = (path.read_bytes()[: limits.output_bytes] for path in outputs)
    if _too_much(outputs, command):
        message = f"it wrote more than {limits.output_bytes} bytes of output"
        return SandboxResult("OL", message=message, stdout=stdout, stderr=stderr)
    if code is None:
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
