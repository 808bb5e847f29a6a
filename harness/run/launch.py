"""Run a job in a child process: the parent starts the child and waits, and the child sends events through a pipe.

The child reads its job as one line from standard input. It sends events to the parent, each as a line with a JSON
object: `started`, `progress`, `found` (a part of the result), and at the end `finished`, `user_error` or `fault`. If
the parent ends, the child ends too. If the parent shows a progress bar, it prints the child's output line by line above
the bar. Before the child opens a debugger, the child sends `debugging` and waits until the parent stops using the
terminal.
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, Protocol

from harness.canonical_setup import Numerics, run_environment
from harness.errors import ChildFault, Stopped, UserError, from_os_error
from harness.run.debugger import support_breakpoints

# How long an experiment that ignores Ctrl-C (`except: pass`) may continue after Ctrl-C.
_GRACE_SECONDS = 5.0
_LAST_LINES_SECONDS = 1.0  # a limit, because a process that the experiment started may keep the output pipe open
_REPORT_EVERY = 0.05  # seconds between two progress events; short enough for a bar that moves smoothly


_AT_TERMINAL = "at-terminal"


@dataclass(frozen=True)
class ChildJob:
    """A job for a child process: the module that the child runs, and the line that it reads.

    label: the text before the progress bar. what: the name of the job in messages, such as "run". place: the file that
    a message names if its code ends the process. checkpoint: the file from which an interrupted job can continue, if it
    exists. quiet: whether the standard output of the child is discarded.
    """

    module: str
    line: str
    numerics: Numerics
    label: str
    what: str
    place: str
    checkpoint: Path | None = None
    quiet: bool = False

    @property
    def go_on(self) -> str:
        """A clause that says how to continue after an interruption."""
        again = "run the same command again"
        if self.checkpoint is None or not self.checkpoint.is_file():
            return again
        return f"{again} with --resume (RESUME=1) to continue from {self.checkpoint.parent}"


def launch_child(
    job: ChildJob,
    *,
    bar: bool = True,
    hear: Callable[[Mapping[str, Any]], None] = lambda event: None,
    child: "Child | None" = None,
) -> dict[str, Any]:
    """Do a job in a child process and return its result. If `bar`, show the progress by `progress_display`.

    hear: gets each event `found`, and may print lines. child: a process that was started for this job, or None to start
    one now. Raises `UserError` for a user's mistake, `Stopped` after Ctrl-C, and `ChildFault` for a bug in trainwreck.
    """
    outcome: dict[str, Any] = {"event": "none"}
    when = "before the first step"
    progress = progress_display.get()(job.label) if bar else None
    with progress or contextlib.nullcontext(), contextlib.ExitStack() as stack:
        with _blocked_interrupts():
            child = child or Child(job.module, job.numerics, bar=bar, quiet=job.quiet)
            stack.enter_context(child.follow(job, progress))
        for line in child.events:
            if not line.endswith("\n"):
                break  # the child was killed while it wrote this line
            event = json.loads(line)
            if event["event"] == "progress":
                if progress:
                    says = f"loss {float(event['loss']):.4g}" if "loss" in event else str(event["says"])
                    progress.update(event["step"], event["steps"], says)
                when = f"at step {event['step']}" + (f" of {event['steps']}" if event["steps"] else "")
            elif event["event"] == "found":
                with progress.pause() if progress else contextlib.nullcontext():
                    hear(event)
            elif event["event"] == "debugging":
                child.leave_terminal()
            else:
                outcome = event
    code = child.process.returncode
    if outcome["event"] == "finished":
        # The child ended before it received Ctrl-C, but a command that does several jobs must not start the next job.
        if child.interrupted:
            raise Stopped(f"Stopped just after the {job.what} ended: run the same command again.")
        result: dict[str, Any] = outcome["result"]
        return result
    if outcome["event"] == "user_error":
        raise UserError(outcome["message"])
    if outcome["event"] == "fault":
        raise ChildFault(f"the {job.what} failed because of a bug in trainwreck; the traceback is above")
    if child.interrupted or code in (130, -signal.SIGINT):
        raise Stopped(f"Stopped {when}: {job.go_on}.")
    raise _end_without_result(job, when, code, started=outcome["event"] != "none")


def _end_without_result(job: ChildJob, when: str, code: int, *, started: bool) -> UserError | ChildFault:
    """Return the error for a process that ended with status `code` before its job was done."""
    if code > 0 and not started:
        return ChildFault(f"the process of the {job.what} did not start; the output above says why")
    if code < 0:
        hint = ", which the system sends if there is not enough memory" if code == -signal.SIGKILL else ""
        killer = f"{signal.Signals(-code).name}{hint}"
        return UserError(f"The {job.what} was killed {when} by {killer}: {job.go_on}.")
    return UserError(
        f"{job.place} ended the process of the {job.what} {when}, with status {code}: remove the line that calls exit."
    )


def _has_terminal() -> bool:
    """Return whether standard input and standard error are a terminal, so that a user can answer questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


class ProgressDisplay(Protocol):
    """Shows the progress of a job. It is a context manager, so that it can remove what it shows."""

    def __enter__(self) -> "ProgressDisplay": ...

    def __exit__(self, *_: object) -> None: ...

    def update(self, step: int, steps: int, says: str) -> None:
        """Show that `step` of `steps` steps are done, followed by the text `says`. If `steps` is 0, it is unknown."""

    def pause(self) -> contextlib.AbstractContextManager[None]:
        """Return a context in which the command may print lines of its result."""

    def print_above(self, lines: IO[str]) -> None:
        """Show each line of the child's output until the stream ends."""


class _Bar:
    """A progress bar on standard error. Use it as a context manager, which removes the bar at the end."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        words = (TextColumn(f"{{task.fields[{name}]}}") for name in ("done", "says"))
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            *words,
            TimeRemainingColumn(compact=True),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, expand=True)
        self._task = self._progress.add_task(label, total=None, done="", says="starting")

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Remove the bar for the time of the block, in which the command prints lines of its result."""
        running = self._progress.live.is_started
        self._progress.stop()
        try:
            yield
        finally:
            if running:
                self._progress.start()

    def update(self, step: int, steps: int, says: str) -> None:
        """Show how many steps are done, and the loss or another text. If the number of steps is 0, it is unknown."""
        done = f"{step:>{len(str(steps))}}/{steps}" if steps else str(step)
        self._progress.update(self._task, completed=step, total=steps or None, done=done, says=says)

    def print_above(self, lines: IO[str]) -> None:
        """Print each line above the bar until the stream ends."""
        with lines:
            for line in lines:
                self._progress.console.out(line.rstrip("\n"), highlight=False)


def _terminal_bar(label: str) -> ProgressDisplay | None:
    return _Bar(label) if sys.stderr.isatty() else None


# Makes the display of a job from its label, or None if nobody sees the progress.
progress_display: ContextVar[Callable[[str], ProgressDisplay | None]] = ContextVar(
    "progress_display", default=_terminal_bar
)


class Child:
    """A child process, and the pipe of its events.

    The process imports torch and waits for its job. Start it before the job is known to save the time of the import.
    `launch_child` gives it the job and follows it; `begin` gives the job earlier, so that the process works meanwhile.
    `close` ends a process that nobody follows.

    bar: whether `launch_child` will show the progress. quiet: as in `ChildJob`.

    The child's standard input stays open while the parent runs. When it closes, the child ends. The output of an
    experiment goes to standard error, because standard output contains only the results of the command.
    """

    def __init__(self, module: str, numerics: Numerics, *, bar: bool, quiet: bool = False) -> None:
        self.interrupted = False
        self.module = module
        self._quiet = quiet
        self._begun = self._debugging = False
        self._bar: ProgressDisplay | None = None
        self._shows: threading.Thread | None = None
        has_bar = bar and progress_display.get()("") is not None
        reading, writing = os.pipe()
        with _blocked_interrupts():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(writing), _AT_TERMINAL if _has_terminal() else "-"],
                env=run_environment(numerics),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL if quiet else subprocess.PIPE if has_bar else 2,
                stderr=None if not has_bar else subprocess.PIPE if quiet else subprocess.STDOUT,
                pass_fds=(writing,),
                text=True,
                errors="replace",
            )
            os.close(writing)
        self.events = os.fdopen(reading, encoding="utf-8")
        assert self.process.stdin is not None
        self._lifeline: IO[str] = self.process.stdin

    def begin(self, job: ChildJob) -> None:
        """Give the process its job, unless it has one."""
        if not self._begun:
            self._begun = True
            self._send(job.line)

    @contextlib.contextmanager
    def follow(self, job: ChildJob, bar: ProgressDisplay | None) -> Iterator[None]:
        """Give the process its job and, until its end, pass Ctrl-C to it and its output to `bar`."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        before = signal.getsignal(signal.SIGINT)
        try:
            with _blocked_interrupts():
                if in_main_thread:
                    signal.signal(signal.SIGINT, self._interrupt)
            self.begin(job)
            shown = self.process.stderr if self._quiet else self.process.stdout
            if bar and shown:
                self._bar = bar
                self._shows = threading.Thread(target=bar.print_above, args=(shown,), daemon=True)
                self._shows.start()
            yield
        except BaseException:
            self.process.kill()
            raise
        finally:
            self._finish()
            if in_main_thread:
                signal.signal(signal.SIGINT, before)

    def close(self) -> None:
        """Kill the process if it is still there. Do this for a process that `launch_child` may not have followed."""
        if not self.events.closed:
            self.process.kill()
            self._finish()

    def _finish(self) -> None:
        self.process.wait()
        if self._shows:
            self._shows.join(_LAST_LINES_SECONDS)
        self.events.close()
        with contextlib.suppress(BrokenPipeError):
            self._lifeline.close()

    def _send(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the child has ended; its exit status says why
            self._lifeline.write(line + "\n")
            self._lifeline.flush()

    def leave_terminal(self) -> None:
        """Print the child's output so far, remove the progress bar until the end, and tell the child to continue."""
        self._debugging = True
        if self._bar and self._shows:
            self._shows.join(_LAST_LINES_SECONDS)
            self._bar.__exit__()
        self._send("go on")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        # At a terminal the child also gets the signal from the terminal, but it acts only on the first signal. A second
        # Ctrl-C, or the end of the grace period, kills the child. That is safe, because saved files are always
        # complete. During debugging, the debugger handles Ctrl-C.
        if self._debugging:
            return
        if self.interrupted:
            self.process.kill()
            return
        self.interrupted = True
        self.process.send_signal(signal.SIGINT)
        timer = threading.Timer(_GRACE_SECONDS, self.process.kill)
        timer.daemon = True
        timer.start()


@contextlib.contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block Ctrl-C until the handlers of child and parent are set. A signal in the meantime arrives afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Reporter:
    """Sends events from the child to the parent."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._pipe = os.fdopen(descriptor, "w", encoding="utf-8")
        self._last = 0.0

    def send(self, event: str, **fields: Any) -> None:
        """Send one event. If the parent has ended, end this process."""
        try:
            self._pipe.write(json.dumps({"event": event, **fields}) + "\n")
            self._pipe.flush()
        except BrokenPipeError:
            os._exit(1)

    def progress(self, step: int, steps: int, loss: float) -> None:
        """Send an event that says that `step` of `steps` batches are done. At most a few events a second are sent."""
        now = time.monotonic()
        if step == steps or now - self._last >= _REPORT_EVERY:
            self._last = now
            self.send("progress", step=step, steps=steps, loss=str(loss))


def serve(
    work: Callable[[str, Reporter], None],
    mistake: Callable[[OSError, str], UserError | None] = lambda error, line: from_os_error(error),
) -> int:
    """In the child process: read the job from standard input, do it, and return the exit status.

    The status is 0 if the job is done, 2 for a user's mistake, 3 for a bug in trainwreck, and 130 after Ctrl-C. work: a
    function that does the job and sends `finished`; it gets the line of the job. mistake: a function that returns a
    `UserError` for an `OSError` that the user can fix, or None.
    """
    # Until the job starts, Ctrl-C ends this process at once: there is nothing to save, and a traceback of an import is
    # useless.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    reporter = Reporter(int(sys.argv[1]))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # print each line at once, also into a pipe or a file
    # This takes two seconds or more, so do it before Ctrl-C is caught, and before the job is known.
    with contextlib.suppress(ImportError):  # the import below reports an installation without torch
        import torch._dynamo
    line = sys.stdin.readline()
    if not line:
        return 1  # the parent has ended
    answered = end_with_parent()

    def ask_for_terminal() -> None:
        reporter.send("debugging")
        answered.wait()

    support_breakpoints(ask_for_terminal if sys.argv[2] == _AT_TERMINAL else None)
    try:
        import torch  # noqa: F401

        reporter.send("started")
        signal.signal(signal.SIGINT, _raise_once)
        work(line, reporter)
    except KeyboardInterrupt:
        return 130
    except (UserError, OSError) as error:
        said = mistake(error, line) if isinstance(error, OSError) else error
        if said is None:
            return _report_fault(reporter)
        reporter.send("user_error", message=str(said))
        return 2
    except Exception:
        return _report_fault(reporter)
    return 0


def _raise_once(number: int, frame: FrameType | None) -> None:
    # At a terminal the signal arrives twice: from the terminal, and from the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_with_parent() -> threading.Event:
    """End this process when the parent closes standard input. To the experiment, standard input looks empty.

    Return an event that is set when the parent writes another line.
    """
    answered = threading.Event()
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def watch() -> None:
        while os.read(lifeline, 64):
            answered.set()
        os._exit(1)  # ending without cleanup is safe, because saved files are always complete

    threading.Thread(target=watch, daemon=True).start()
    return answered


def _report_fault(reporter: Reporter) -> int:
    traceback.print_exc()
    reporter.send("fault")
    return 3
