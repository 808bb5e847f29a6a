"""Runs a piece of Python in the sandbox, for the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from grader.sandbox import Limits, SandboxResult, run_in_sandbox
from grader.sandbox.mounts import launcher_python

MIB = 2**20
SMALL = Limits(
    cpu_seconds=10,
    wall_seconds=20,
    memory_bytes=200 * MIB,
    processes=20,
    file_bytes=4 * MIB,
    scratch_bytes=8 * MIB,
    scratch_files=100,
    output_bytes=100_000,
    result_bytes=2 * MIB,
)


def sandboxed(
    code: str,
    limits: Limits = SMALL,
    *,
    inputs: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    visible: Sequence[Path] = (),
    stdin: bytes = b"",
) -> SandboxResult:
    command = [str(launcher_python()), "-I", "-S", "-c", code]
    return run_in_sandbox(
        command,
        inputs=inputs or {},
        environment=environment or {},
        limits=limits,
        visible=visible,
        stdin=stdin,
    )


def running(name: str) -> list[bytes]:
    """Return the command lines of all processes on this machine that hold this name."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:  # it has just ended
            continue
        if name.encode() in line:
            found.append(line)
    return found
