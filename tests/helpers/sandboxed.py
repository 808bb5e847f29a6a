"""Run Python code in the sandbox: in a new worker, or in a fork of a permanent worker."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from grader.replay.replayer import ENGINES, Engine
from grader.sandbox import (
    ForkingSandbox,
    Interpreter,
    Limits,
    SandboxCommand,
    SandboxResult,
    StopSignal,
    base_python,
    run_in_sandbox,
)

MIB = 2**20
SMALL = Limits(
    seconds=10,
    wall_seconds=60,
    memory_bytes=200 * MIB,
    processes=20,
    file_bytes=4 * MIB,
    scratch_bytes=8 * MIB,
    scratch_files=100,
    output_bytes=100_000,
    result_bytes=2 * MIB,
)
# The preload makes a random mark, which shows from which process a run was forked.
MARKED = "import builtins, os; builtins.mark = os.urandom(8).hex()"

_engine: list[Engine] = ["fresh"]
PYTHON = (str(base_python()), "-I", "-S")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Make `sandboxed` run in each engine."""
    _engine.append(request.param)
    yield request.param
    _engine.pop()


def script(folder: Path, code: str) -> Path:
    """Return a script with this code in a folder, which may contain other scripts."""
    path = folder / f"script{abs(hash(code))}.py"
    if not path.exists():
        # Write the whole file at once, because another thread may be running it.
        made = path.with_suffix(f".{threading.get_ident()}")
        made.write_text(code, encoding="utf-8")
        made.rename(path)
    return path


def sandboxed(
    code: str,
    limits: Limits = SMALL,
    *,
    inputs: Mapping[str, bytes] | None = None,
    environment: Mapping[str, str] | None = None,
    visible: Sequence[Path] = (),
    stop: StopSignal | None = None,
    name: str = "script",
) -> SandboxResult:
    """Run code in the engine of the fixture, or in a new worker. The command lines of its processes contain `name`."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        preload = script(Path(folder), "")
        interpreter = Interpreter(PYTHON, environment or {}, (Path(folder), *visible), preload)
        command = SandboxCommand(script(Path(folder), code), interpreter, inputs or {}, limits)
        if _engine[-1] == "fresh":
            return run_in_sandbox(command, stop)
        with closing(ForkingSandbox(1)) as sandbox:
            result = sandbox(command, stop)
            assert not sandbox.failure
            return result


class Warm:
    """A sandbox that forks, for scripts in its own folder. The command lines of its processes contain this folder."""

    def __init__(self, folder: Path, preload: str) -> None:
        self.folder = folder
        (folder / "preload.py").write_text(preload, encoding="utf-8")
        self.interpreter = Interpreter((sys.executable, "-P"), {}, (Path(sys.prefix), folder), folder / "preload.py")
        self.sandbox = ForkingSandbox(jobs=2)

    def command(self, code: str, limits: Limits = SMALL) -> SandboxCommand:
        return SandboxCommand(script(self.folder, code), self.interpreter, {}, limits)

    def run(self, code: str, limits: Limits = SMALL, stop: StopSignal | None = None) -> SandboxResult:
        return self.sandbox(self.command(code, limits), stop)

    def said(self, code: str) -> str:
        result = self.run(code)
        assert (result.status, result.stderr, self.sandbox.failure) == ("OK", b"", ""), result
        return result.stdout.decode().strip()

    def processes(self) -> dict[int, int]:
        """Return all processes of the sandbox, also bubblewrap, each with its parent."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if str(self.folder / "preload.py").encode() in (path / "cmdline").read_bytes():
                    found[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # the process has just ended
                continue
        return found

    def is_running(self) -> bool:
        """Return whether a run has begun. Its process then has the name of its script."""
        names = (Path(f"/proc/{number}/comm") for number in self.processes())
        return any(path.exists() and path.read_text().startswith("script") for path in names)

    def process(self) -> int:
        """Return the worker: a child of bubblewrap, which is a child of this process."""
        parents = self.processes()
        (bubblewrap,) = (pid for pid, parent in parents.items() if parent == os.getpid())
        (warm,) = (pid for pid, parent in parents.items() if parent == bubblewrap)
        return warm

    def launcher(self) -> int:
        """Return the launcher of the present or the next run: a child of the worker."""
        process = self.process()
        (launcher,) = (pid for pid, parent in self.processes().items() if parent == process)
        return launcher


@contextmanager
def opened(folder: Path, preload: str = MARKED) -> Iterator[Warm]:
    """Open a sandbox that forks. At the end, no process of the sandbox remains."""
    warm = Warm(folder, preload)
    try:
        yield warm
    finally:
        warm.sandbox.close()
        assert warm.processes() == {}


def running(name: str) -> list[str]:
    """Return the processes on this machine whose command line contains this name, each with its state."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line, status = (folder / "cmdline").read_bytes(), (folder / "status").read_text()
        except OSError:  # the process has just ended
            continue
        if name.encode() in line:
            found.append(f"{folder.name} {status.splitlines()[2]} {line.decode(errors='replace')[-500:]}")
    return found
