"""A warm sandbox for tests: scripts in a folder of its own, and all its processes on this machine."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandboxed import SMALL

from grader.sandbox import Limits, SandboxResult, StopSignal, WarmSandbox, run_in_sandbox

# Which process a run was forked from: its own random word.
MARKED = "import builtins, os; builtins.mark = os.urandom(8).hex()"


class Warm:
    """A warm sandbox for scripts in a folder of its own, whose name is in the command line of all its processes."""

    def __init__(self, folder: Path, preload: str) -> None:
        self.folder = folder
        (folder / "preload.py").write_text(preload, encoding="utf-8")
        self.sandbox = WarmSandbox(folder / "preload.py", {}, self.visible, jobs=2)

    @property
    def visible(self) -> tuple[Path, ...]:
        return (Path(sys.prefix), self.folder)

    def command(self, code: str) -> list[str]:
        script = self.folder / f"script{abs(hash(code))}.py"
        if not script.exists():
            # Whole at once: another thread may be running it.
            made = script.with_suffix(f".{threading.get_ident()}")
            made.write_text(code, encoding="utf-8")
            made.rename(script)
        return [sys.executable, "-P", str(script)]

    def run(self, code: str, limits: Limits = SMALL, stop: StopSignal | None = None) -> SandboxResult:
        command = self.command(code)
        return self.sandbox(
            command, inputs={}, environment={}, limits=limits, visible=self.visible, stop=stop
        )

    def fresh(self, code: str) -> SandboxResult:
        command = self.command(code)
        return run_in_sandbox(command, inputs={}, environment={}, limits=SMALL, visible=self.visible)

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
def opened(folder: Path, preload: str = MARKED) -> Iterator[Warm]:
    warm = Warm(folder, preload)
    try:
        yield warm
    finally:
        warm.sandbox.close()
        assert warm.processes() == {}
