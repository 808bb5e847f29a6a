"""Start one job at a time in a process of its own, follow its progress, and stop it with all its children."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from harness.errors import UserError

_MOST_OUTPUT = 300  # the number of the last lines of output that the page shows
_GRACE_SECONDS = 8.0  # a run that ignores Ctrl-C is killed after 5 seconds by its parent
_ENDED = "The process of the job was killed: run it again."


class JobQueue:
    """The jobs of a server, of which only one can run at a time. All methods may be called by any thread."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._number = 0
        self._process: subprocess.Popen[str] | None = None
        self._state: dict[str, Any] | None = None
        self._output: deque[str] = deque(maxlen=_MOST_OUTPUT)
        self._triage: dict[str, dict[str, Any]] = {}
        self._follower: threading.Thread | None = None

    def start(self, verb: str, name: str, **options: Any) -> None:
        """Start a job (a key of `harness.practice.job.JOBS`) for an exercise. Raises `UserError` if one is running."""
        with self._lock:
            if self._state and self._state["status"] == "running":
                running = f"{self._state['verb']} of {self._state['name']}"
                raise UserError(f"Only one run at a time: {running} is in progress. Wait until it ends, or stop it.")
            self._number += 1
            reading, writing = os.pipe()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "harness.practice.job", str(writing)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
                process_group=0,  # Ctrl-C in the terminal of the server must not reach it twice
                text=True,
                errors="replace",
            )
            os.close(writing)
            self._output.clear()
            self._state = {
                "number": self._number, "verb": verb, "name": name, "status": "running", "says": "", "result": None,
                "progress": {"label": "", "step": 0, "steps": 0, "says": "starting"},
            }  # fmt: skip
            process, state = self._process, self._state
            job = {**options, "verb": verb, "name": name, "work": str(self._work)}
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
            self._follower = threading.Thread(target=self._follow, args=(process, state, reading), daemon=True)
            self._follower.start()

    def _follow(self, process: "subprocess.Popen[str]", state: dict[str, Any], reading: int) -> None:
        """Read the events of a job until it ends, then end its children."""
        printing = threading.Thread(target=self._collect, args=(process,), daemon=True)
        printing.start()
        end: dict[str, Any] = {"event": "failed", "says": _ENDED}
        with os.fdopen(reading, encoding="utf-8") as events:
            for line in events:
                if not line.endswith("\n"):
                    break  # the process was killed while it wrote this line
                event = json.loads(line)
                if event.pop("event") == "progress":
                    with self._lock:
                        state["progress"] = event
                else:
                    end = json.loads(line)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its number is not given to another process yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        printing.join(1.0)
        with self._lock:
            if process.stdin:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            state |= {"status": end["event"], "says": end.get("says", ""), "result": end.get("result")}
            if state["verb"] == "triage" and state["result"]:
                self._triage[state["name"]] = state["result"]

    def _collect(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._output.append(line.rstrip("\n"))

    def state(self) -> dict[str, Any] | None:
        """Return the running job or the last one, with its output, or None. It is plain data for JSON."""
        with self._lock:
            return None if self._state is None else {**self._state, "output": list(self._output)}

    def triage(self, name: str) -> dict[str, Any] | None:
        """Return the last result of triage for an exercise, or None."""
        with self._lock:
            return self._triage.get(name)

    def stop(self) -> None:
        """Stop the running job and its children, and wait until they have ended."""
        process, follower = self._process, self._follower
        if process is None or follower is None:
            return
        process.send_signal(signal.SIGINT)
        end = time.monotonic() + _GRACE_SECONDS
        while follower.is_alive() and time.monotonic() < end:
            follower.join(0.05)
        if follower.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            follower.join()
