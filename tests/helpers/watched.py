"""Run commands in separate processes, and watch, stop and kill them with all their child processes."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Every command here takes much less time, even on a busy machine.
PATIENCE_SECONDS = 300.0
# The child processes of a command may take this long to end after it.
GONE_SECONDS = 30.0
_POLL_SECONDS = 0.002
# Runs a command, waits until all processes that it started have ended, and exits with its status. Orphans below this
# process become its children (Linux: PR_SET_CHILD_SUBREAPER, 36), so none escapes. When the command has ended, this
# process changes its own name (PR_SET_NAME, 15).
_KEEPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
if libc.prctl(36, 1, 0, 0, 0) != 0:
    raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
child, code = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ), 0
while True:
    try:
        pid, status = os.wait()
    except ChildProcessError:
        sys.exit(code if code >= 0 else 128 - code)
    if pid == child:
        code = os.waitstatus_to_exitcode(status)
        libc.prctl(15, b"ended", 0, 0, 0)
"""


class Stuck(AssertionError):
    """A process did not end, or an event did not happen."""


@dataclass(frozen=True)
class Ended:
    """The end of a command: its exit status (128 and more for a signal) and its output."""

    status: int
    out: str
    err: str


class Watched:
    """A running command with all processes that it starts, even if their parents end."""

    def __init__(
        self, words: tuple[str | Path, ...], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._out, self._err = (
            tempfile.TemporaryFile("w+", errors="surrogateescape")  # noqa: SIM115 - closed by finish()
            for _ in range(2)
        )
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, *map(str, words)],
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
        )

    def has_ended(self) -> bool:
        """Return whether the command and all its processes have ended."""
        return self._keeper.poll() is not None

    def processes(self) -> list[int]:
        """Return all processes of the command, the command itself first."""
        return _descendants(self._keeper.pid)

    def wait_until(self, there: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait until `there` returns True or the command has ended. Return whether `there` came first."""
        end = time.monotonic() + seconds
        while not there():
            if self.has_ended():
                return False
            if time.monotonic() > end:
                raise Stuck(f"nothing came in {seconds:g} seconds")
            time.sleep(_POLL_SECONDS)
        return True

    def run(self, script: str) -> int | None:
        """Return the run of this script in a sandbox, if any. The process of a run has the name of its script."""
        return next((process for process in self.processes() if _name(process) == script), None)

    def worker(self) -> int | None:
        """Return the worker that has forked a run of `replay.py`, if there is one."""
        workers = (process for process in self.processes() if "worker import" in "".join(_command_line(process)[1:4]))
        return None if self.run("replay.py") is None else next(workers, None)

    def kill(self, *, everything: bool) -> None:
        """Kill the command alone, or the command and all its processes at the same time."""
        for process in self.processes()[: None if everything else 1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def finish(self, seconds: float = PATIENCE_SECONDS, gone: float = GONE_SECONDS) -> Ended:
        """Wait until all processes have ended. After this time, kill them and raise `Stuck`.

        gone: the number of seconds that child processes may live longer than the command.
        """
        end, alone = time.monotonic() + seconds, False
        with self._out, self._err:
            while not self.has_ended():
                if not alone and _name(self._keeper.pid) == "ended":
                    end, alone = min(end, time.monotonic() + gone), True
                if time.monotonic() > end:
                    left = [" ".join(_command_line(process))[:200] for process in self.processes()]
                    self.kill(everything=True)
                    self._keeper.wait()
                    raise Stuck(f"still running: {left}")
                time.sleep(_POLL_SECONDS * 5)
            for file in (self._out, self._err):
                file.seek(0)
            return Ended(self._keeper.returncode, self._out.read(), self._err.read())


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process has just ended
        for path in sorted(Path(f"/proc/{process}/task").glob("*/children")):
            for child in map(int, path.read_text().split()):
                found += [child, *_descendants(child)]
    return found


def _command_line(process: int) -> list[str]:
    return os.fsdecode(_read(process, "cmdline")).split("\0")[:-1]


def _name(process: int) -> str:
    return os.fsdecode(_read(process, "comm")).strip()


def _read(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return b""
