"""The real `grader` in processes of its own, watched, stopped and killed from outside."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_KEEPER = Path(__file__).with_name("keeper.py")
# Far more than anything here takes, on a busy machine too; who waits for longer waits in vain.
PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.002
_LASTING_SECONDS = 0.1


class Stuck(AssertionError):
    """Something did not end, or did not come."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status (128 and more for a signal) and what it said."""

    status: int
    out: str
    err: str


class Grader:
    """A running command of the grader; everything that it starts is known, whatever becomes of its parents."""

    def __init__(self, words: tuple[str | Path, ...], variables: Mapping[str, str]) -> None:
        environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **variables}
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), *map(str, words)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def has_ended(self) -> bool:
        """Say whether it and everything that it started has ended."""
        return self._keeper.poll() is not None

    def processes(self) -> list[int]:
        """Return all its processes, the grader first."""
        return _descendants(self._keeper.pid)

    def wait_until(self, there: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait until something is so, or it has ended; say whether it was so before."""
        end = time.monotonic() + seconds
        while not there():
            if self.has_ended():
                return False
            if time.monotonic() > end:
                raise Stuck(f"nothing came in {seconds:g} seconds")
            time.sleep(_POLL_SECONDS)
        return True

    def sandboxed(self, script: str) -> int | None:
        """Return the process inside a sandbox that runs this script of ours, if there is one."""
        for process in self.processes():
            words = _command_line(process)
            if len(words) > 2 and words[-1].endswith(f"/inside/{script}") and words[-2] == "-P":
                return process
        return None

    def forked(self) -> int | None:
        """Return the run that the warm process has forked, if there is one that has lasted for a while.

        Below that process lie its launcher, process 1 of the run's own namespace, and the run. The first run of each,
        which only shows that runs can be forked, is over at once.
        """
        run = self._innermost()
        time.sleep(_LASTING_SECONDS)
        return run if run is not None and run == self._innermost() else None

    def warm(self) -> int | None:
        """Return the warm process, if there is one that has forked a run."""
        return self._chain()[0] if self._innermost() is not None else None

    def _innermost(self) -> int | None:
        chain = self._chain()
        return chain[3] if len(chain) == 4 else None

    def _chain(self) -> list[int]:
        return [process for process in self.processes() if _is_warm(process)]

    def kill(self, *, everything: bool) -> None:
        """Kill the grader alone, or it and all that it started, as if at one moment."""
        processes = self.processes()
        for process in processes[: None if everything else 1]:
            _send(process, signal.SIGKILL)

    def finish(self, seconds: float = PATIENCE_SECONDS) -> Ended:
        """Wait until nothing of it is left. Raises `Stuck` where something is, and kills that."""
        try:
            out, err = self._keeper.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            left = [b" ".join(map(os.fsencode, _command_line(process)))[:200] for process in self.processes()]
            for process in self.processes():
                _send(process, signal.SIGKILL)
            self._keeper.communicate()
            raise Stuck(f"still running after {seconds:g} seconds: {left}") from None
        return Ended(self._keeper.returncode, out, err)


def grader_command(*words: str | Path) -> tuple[str, ...]:
    """Return the command line of the grader."""
    return (sys.executable, "-P", "-m", "grader", *map(str, words))


def run_grader(*words: str | Path, **variables: str) -> Ended:
    """Run the grader to its end."""
    return Grader(grader_command(*words), variables).finish()


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    for child in _children(process):
        found += [child, *_descendants(child)]
    return found


def _children(process: int) -> list[int]:
    found: list[int] = []
    try:
        for path in sorted(Path(f"/proc/{process}/task").glob("*/children")):
            found += map(int, path.read_text().split())
    except OSError:  # it has just ended
        pass
    return found


def _command_line(process: int) -> list[str]:
    try:
        return os.fsdecode(Path(f"/proc/{process}/cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def _is_warm(process: int) -> bool:
    words = _command_line(process)
    return len(words) > 3 and words[1:3] == ["-P", "-c"] and "warm_inside" in words[3]


def _send(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
