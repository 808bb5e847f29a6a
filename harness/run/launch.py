"""Starts the process that runs an experiment, shows how far it is, and turns its end into a result or an error."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import IO, Any, Protocol

from harness.errors import Stopped, UserError
from harness.run.environment import Numerics, run_environment
from harness.run.settings import RunJob

# How long an experiment that will not be interrupted (`except: pass`) may go on after Ctrl-C.
_GRACE_SECONDS = 5.0


class ChildFault(Exception):
    """The process that trains ended through a fault of ours; its traceback is on standard error."""


@dataclass(frozen=True)
class ChildJob:
    """What a process is to do: the module that runs, and its job as one line.

    `label` stands before the progress bar, `what` ("run") and `place` (the file at fault) in what is said of a process
    that ended by itself, and `go_on` is how its user goes on after an interrupt.
    """

    module: str
    line: str
    numerics: Numerics
    label: str
    what: str
    place: str
    go_on: str


class _Bar(Protocol):
    def __call__(self, step: int, steps: int, says: str) -> None: ...


@contextmanager
def _progress_bar(label: str, *, shown: bool) -> Iterator[_Bar]:
    """Show a bar on a terminal; elsewhere nothing, so that logs stay readable."""
    if not shown or not sys.stderr.isatty():
        yield lambda step, steps, says: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[says]}"),
        TimeRemainingColumn(compact=True),
    )
    # What the experiment prints goes through another process: rich cannot move it out of the bar's way.
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as progress:
        task = progress.add_task(label, total=None, says="")

        def update(step: int, steps: int, says: str) -> None:
            progress.update(task, completed=step, total=steps, says=says)

        yield update


class _Child:
    """The process that runs an experiment, and the pipe on which it reports.

    Its standard input stays open while this process lives: the child goes down when it closes. What an
    experiment prints goes to standard error, since standard output is for what the command says.
    """

    def __init__(self, job: ChildJob) -> None:
        self.interrupted = False
        reading, writing = os.pipe()
        # Until it has said what it does about Ctrl-C, the child must not get one; a blocked signal waits.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", job.module, str(writing)],
                env=run_environment(job.numerics),
                stdin=subprocess.PIPE,
                stdout=2,
                pass_fds=(writing,),
                text=True,
            )
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, self._interrupt)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            os.close(writing)
        self.events = os.fdopen(reading, encoding="utf-8")
        assert self.process.stdin is not None
        self._lifeline: IO[str] = self.process.stdin
        with contextlib.suppress(BrokenPipeError):  # the child is gone; how it ended says why
            self._lifeline.write(job.line + "\n")
            self._lifeline.flush()

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # At a terminal the child has had the signal too, and minds only the first one. The second Ctrl-C,
        # or the end of the grace, kills: what was saved is whole at any moment.
        if self.interrupted:
            self.process.kill()
            return
        self.interrupted = True
        self.process.send_signal(signal.SIGINT)
        timer = threading.Timer(_GRACE_SECONDS, self.process.kill)
        timer.daemon = True
        timer.start()

    def wait(self) -> int:
        """Return how the process ended."""
        code = self.process.wait()
        self.events.close()
        with contextlib.suppress(BrokenPipeError):
            self._lifeline.close()
        return code


@contextmanager
def _started(job: ChildJob) -> Iterator[_Child]:
    before = signal.getsignal(signal.SIGINT)
    child = _Child(job)
    try:
        yield child
    finally:
        if child.process.poll() is None:
            child.process.kill()
        child.wait()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def launch(job: RunJob, *, resumable: bool = True, bar: bool = True) -> dict[str, Any]:
    """Make one run in a process of its own and return its `result.json`.

    Not `resumable` is a run whose folder will be gone: then no error sends anybody there. Raises as `launch_child`.
    """
    name = job.experiment if job.recipe == "none" else job.recipe
    go_on = "give the same command again"
    if resumable:
        go_on += f" with --resume (RESUME=1) to go on from what is in {job.folder}.partial"
    child = ChildJob(
        module="harness.run.run_job",
        line=job.to_json(),
        numerics=job.settings.numerics,
        label=f"{job.run} run of {name}",
        what="run",
        place=job.source_path or "The experiment",
        go_on=go_on,
    )
    return launch_child(child, bar=bar)


def launch_child(job: ChildJob, *, bar: bool = True) -> dict[str, Any]:
    """Do a job in a process of its own and return its result; `bar` shows how far it is, on a terminal.

    Raises `UserError` for a mistake of the user's, `Stopped` after Ctrl-C, and `ChildFault` for a fault of ours.
    """
    outcome: dict[str, Any] = {"event": "none"}
    when = "before the first step"
    with _started(job) as child, _progress_bar(job.label, shown=bar) as progress:
        for line in child.events:
            if not line.endswith("\n"):
                break  # the child was killed while it wrote
            event = json.loads(line)
            if event["event"] == "progress":
                says = f"loss {float(event['loss']):.4g}" if "loss" in event else str(event["says"])
                progress(event["step"], event["steps"], says)
                when = f"at step {event['step']} of {event['steps']}"
            else:
                outcome = event
        code = child.wait()
    if outcome["event"] == "finished":
        # Too late for the child, and yet a wish: whoever does several things in a row is to stop here.
        if child.interrupted:
            raise Stopped(f"Stopped when the {job.what} had just ended: give the same command again.")
        result: dict[str, Any] = outcome["result"]
        return result
    if outcome["event"] == "user_error":
        raise UserError(outcome["message"])
    if outcome["event"] == "fault":
        raise ChildFault(f"the {job.what} ended through a fault of this program; its traceback is above")
    if child.interrupted or code in (130, -signal.SIGINT):
        raise Stopped(f"Stopped {when}: {job.go_on}.")
    if code < 0:
        raise UserError(f"The {job.what} was killed {when} by {_describe_signal(-code)}: {job.go_on}.")
    raise UserError(
        f"{job.place} ended the whole process {when}, with status {code}: take out what exits there."
    )


def _describe_signal(number: int) -> str:
    hint = ", as the system does when memory runs out" if number == signal.SIGKILL else ""
    return f"{signal.Signals(number).name}{hint}"
