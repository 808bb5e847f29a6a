"""Runs a piece of Python in the sandbox, for the tests: in a fresh process, or in one that was forked."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from grader.replay.replayer import ENGINES, Engine
from grader.sandbox import Limits, SandboxResult, WarmSandbox, launcher_python, run_in_sandbox

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

_engine: list[Engine] = ["fresh"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Make `sandboxed` run in each engine."""
    _engine.append(request.param)
    yield request.param
    _engine.pop()


def sandboxed(
    code: str,
    limits: Limits = SMALL,
    *,
    inputs: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    visible: Sequence[Path] = (),
    stdin: bytes = b"",
) -> SandboxResult:
    if _engine[-1] == "warm":
        return _forked(code, limits, inputs or {}, environment or {}, visible, stdin)
    command = [str(launcher_python()), "-I", "-S", "-c", code]
    return run_in_sandbox(
        command,
        inputs=inputs or {},
        environment=environment or {},
        limits=limits,
        visible=visible,
        stdin=stdin,
    )


def _forked(
    code: str,
    limits: Limits,
    inputs: Mapping[str, bytes],
    environment: Mapping[str, str],
    visible: Sequence[Path],
    stdin: bytes,
) -> SandboxResult:
    with tempfile.TemporaryDirectory(prefix="script-") as name:
        script, preload = Path(name, "script.py"), Path(name, "preload.py")
        script.write_text(code, encoding="utf-8")
        preload.write_text("", encoding="utf-8")
        seen = (Path(sys.prefix), Path(name), *visible)
        sandbox = WarmSandbox(preload, environment, seen, jobs=1)
        try:
            return sandbox(
                [sys.executable, "-P", str(script)],
                inputs=inputs,
                environment=environment,
                limits=limits,
                visible=seen,
                stdin=stdin,
            )
        finally:
            sandbox.close()
            assert not sandbox.failure


def running(name: str) -> list[str]:
    """Return the processes on this machine whose command line holds this name, each with its state."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line, status = (folder / "cmdline").read_bytes(), (folder / "status").read_text()
        except OSError:  # it has just ended
            continue
        if name.encode() in line:
            found.append(f"{folder.name} {status.splitlines()[2]} {line.decode(errors='replace')[-500:]}")
    return found
