"""Starts the process that trains, shows how far it is, and turns its end into a result or an error."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from harness.environment import run_environment
from harness.errors import UserError
from harness.settings import RunJob


class ChildFault(Exception):
    """The process that trains ended through a fault of ours; its traceback is on standard error."""


class _Bar(Protocol):
    def __call__(self, step: int, steps: int, loss: str) -> None: ...


@contextmanager
def _progress_bar(label: str) -> Iterator[_Bar]:
    """Show a bar on a terminal; elsewhere nothing, so that logs stay readable."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step, steps, loss: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps  loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=None, loss="-")

        def update(step: int, steps: int, loss: str) -> None:
            progress.update(task, completed=step, total=steps, loss=f"{float(loss):.4g}")

        yield update


def _end(
    child: subprocess.Popen[str], job: RunJob, outcome: dict[str, Any] | None, step: str
) -> dict[str, Any]:
    """Return the result of a child that is done, or raise for what ended it."""
    code = child.wait()
    if outcome is not None and outcome["event"] == "user_error":
        raise UserError(outcome["message"])
    if code == 0 and outcome is not None:
        result: dict[str, Any] = outcome["result"]
        return result
    if code == 3:
        raise ChildFault("the run ended through a fault of this program; its traceback is above")
    kept = f"{job.folder}.partial"
    if code in (130, -signal.SIGINT):
        raise UserError(
            f"Stopped {step}: give the same command with --resume (RESUME=1) to go on from {kept}."
        )
    if code < 0:
        name = signal.Signals(-code).name
        hint = " (the machine may be out of memory)" if code == -signal.SIGKILL else ""
        raise UserError(
            f"The run was killed by {name}{hint} {step}: go on from {kept} with --resume (RESUME=1)."
        )
    raise UserError(
        f"{job.source_path or 'The experiment'} ended the process {step}, with status {code}: remove that exit."
    )


def launch(job: RunJob) -> dict[str, Any]:
    """Make one run in a process of its own and return its `result.json`.

    Raises `UserError` for a mistake of the user's, an interrupt among them, and `ChildFault` for one of ours.
    """
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.run_job", str(writing)],
        env=run_environment(job.settings.numerics),
        stdin=subprocess.PIPE,
        pass_fds=(writing,),
        text=True,
    )
    os.close(writing)
    outcome: dict[str, Any] | None = None
    step = "before the first step"
    with (
        os.fdopen(reading, encoding="utf-8") as events,
        _progress_bar(f"{job.run} run of {job.recipe}") as bar,
    ):
        try:
            _send(child.stdin, job.to_json())
            for line in events:
                event = json.loads(line)
                if event["event"] == "progress":
                    bar(event["step"], event["steps"], event["loss"])
                    step = f"at step {event['step']} of {event['steps']}"
                else:
                    outcome = event
        except KeyboardInterrupt:
            # At a terminal the child has had the signal too; sent to the parent alone, it must be passed on.
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            child.wait()
    return _end(child, job, outcome, step)


def _send(pipe: IO[str] | None, text: str) -> None:
    assert pipe is not None
    try:
        pipe.write(text + "\n")
        pipe.close()
    except BrokenPipeError:
        pass  # the child is gone; how it ended says why


def run_path(job: RunJob, name: str) -> Path:
    """Return the path of one file of a finished run."""
    return Path(job.folder) / name
