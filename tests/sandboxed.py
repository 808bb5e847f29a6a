"""Run Python code in the sandbox: in a fresh process, or in a fork of a warm one."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from grader.replay.replayer import ENGINES, Engine
from grader.sandbox import (
    Command,
    Limits,
    SandboxResult,
    StopSignal,
    WarmSandbox,
    launcher_python,
    run_in_sandbox,
)

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
# Which process a run was forked from: its own random word.
MARKED = "import builtins, os; builtins.mark = os.urandom(8).hex()"

_engine: list[Engine] = ["fresh"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Make `sandboxed` run in each engine."""
    _engine.append(request.param)
    yield request.param
    _engine.pop()


def python_command(code: str, limits: Limits = SMALL, visible: Sequence[Path] = ()) -> Command:
    """Return the command that runs this code in the launcher's Python."""
    return Command([str(launcher_python()), "-I", "-S", "-c", code], limits=limits, visible=visible)


def sandboxed(
    code: str,
    limits: Limits = SMALL,
    *,
    inputs: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    visible: Sequence[Path] = (),
) -> SandboxResult:
    """Run code in the engine of the fixture, or in a fresh process."""
    inputs, environment = inputs or {}, environment or {}
    if _engine[-1] == "fresh":
        words = python_command(code).words
        return run_in_sandbox(Command(words, inputs, environment, limits, visible))
    with (
        tempfile.TemporaryDirectory(prefix="script-") as name,
        opened(Path(name), "", environment, visible) as warm,
    ):
        result = warm.run(code, limits, inputs=inputs)
        assert not warm.sandbox.failure
        return result


class Warm:
    """A warm sandbox for scripts in a folder of its own, whose name is in the command line of all its processes."""

    def __init__(
        self,
        folder: Path,
        preload: str,
        environment: Mapping[str, str] | None = None,
        visible: Sequence[Path] = (),
    ) -> None:
        self.folder = folder
        self.visible = (Path(sys.prefix), folder, *visible)
        self._environment = environment or {}
        (folder / "preload.py").write_text(preload, encoding="utf-8")
        self.sandbox = WarmSandbox(folder / "preload.py", self._environment, self.visible, jobs=2)

    def command(
        self, code: str, limits: Limits = SMALL, inputs: Mapping[str, bytes] | None = None
    ) -> Command:
        script = self.folder / f"script{abs(hash(code))}.py"
        if not script.exists():
            # Whole at once: another thread may be running it.
            made = script.with_suffix(f".{threading.get_ident()}")
            made.write_text(code, encoding="utf-8")
            made.rename(script)
        return Command(
            [sys.executable, "-P", str(script)], inputs or {}, self._environment, limits, self.visible
        )

    def run(
        self,
        code: str,
        limits: Limits = SMALL,
        stop: StopSignal | None = None,
        inputs: Mapping[str, bytes] | None = None,
    ) -> SandboxResult:
        return self.sandbox(self.command(code, limits, inputs), stop)

    def said(self, code: str) -> str:
        result = self.run(code)
        assert (result.status, result.stderr, self.sandbox.failure) == ("OK", b"", ""), result
        return result.stdout.decode().strip()

    def processes(self) -> dict[int, int]:
        """Return all its processes, bubblewrap among them, each with its parent."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if str(self.folder / "preload.py").encode() in (path / "cmdline").read_bytes():
                    found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
        return found

    def process(self) -> int:
        """Return the warm process itself: a child of bubblewrap's, which is a child of this one's."""
        parents = self.processes()
        (bubblewrap,) = (pid for pid, parent in parents.items() if parent == os.getpid())
        (warm,) = (pid for pid, parent in parents.items() if parent == bubblewrap)
        return warm


@contextmanager
def opened(
    folder: Path,
    preload: str = MARKED,
    environment: Mapping[str, str] | None = None,
    visible: Sequence[Path] = (),
) -> Iterator[Warm]:
    """Open a warm sandbox; in the end nothing of it is left."""
    warm = Warm(folder, preload, environment, visible)
    try:
        yield warm
    finally:
        warm.sandbox.close()
        assert warm.processes() == {}


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
