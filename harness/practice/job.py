"""A job of the page in a process of its own: make a run, judge an attempt, or run checks.

The process calls the same functions as the commands. It reads its job as one line from standard input, and sends events
to the server through a pipe. SIGINT stops it, as Ctrl-C stops a command. When the server ends, the process ends.
"""

import json
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any

from harness.console.command_line import FAULT, describe_error
from harness.run.launch import ProgressDisplay, Reporter, end_with_parent, progress_display
from harness.run.options import RunOptions


def make_broken_run(name: str, work: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the workspace and its broken run, as `harness exercise` does."""
    from harness.student.exercise import start_exercise

    workspace, _ = start_exercise(name, work, RunOptions(), resume=bool(given.get("resume")))
    if not workspace.has_run("broken"):
        return {"says": f"Before you run this experiment, say what it will do: {workspace.command('predict')}"}
    restored = workspace.restore()
    return {"says": f"Restored missing files: {', '.join(restored)}." if restored else ""}


def verify(name: str, work: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run the edited experiment and judge it, as `harness verify` does."""
    from harness.student.exercise import judge_attempt, verify_exercise
    from harness.student.summary import attempt_verdict
    from harness.student.verdict_children import VerdictChildren

    with VerdictChildren() as children:
        workspace = verify_exercise(name, work, RunOptions(), resume=bool(given.get("resume")), children=children)
        attempt = judge_attempt(workspace, children=children)
    return {
        "attempt": None if attempt is None else attempt.number,
        "fixed": attempt is not None and attempt.fixed,
        "says": attempt_verdict(workspace, attempt, in_shell=False),
    }


def run_triage(name: str, work: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run all checks of triage, or the check `given["check"]`, as `harness triage` does."""
    from harness.student.show_checks import find_target, measure, screen_lines

    target = find_target(name, work, RunOptions())
    check = str(given.get("check") or "").replace("-", "_")
    reports = measure(target, [check] if check else [])
    checks = []
    for one in reports:
        # A course may hide the outcomes, which say whether something is wrong.
        shown = target.triage == "outcomes"
        found = one.lines() if shown else one.measured_lines()
        checks.append(
            {
                "title": one.title,
                "question": one.check.question,
                "sound": one.outcome.sound if shown else None,
                "judged": one.outcome.judged,
                "lines": [str(line) for line in found],
            }
        )
    lines = screen_lines(reports, target.triage, target.source, edited=target.edited, in_shell=False)
    screen = [(str(line), line.tone) for line in lines]
    return {"source": target.source, "screen": screen, "checks": checks if not check else []}


JOBS: Mapping[str, Callable[[str, Path, Mapping[str, Any]], dict[str, Any]]] = {
    "exercise": make_broken_run,
    "verify": verify,
    "triage": run_triage,
}


class ReportedProgress:
    """Sends the progress of a job to the server. The output of the experiment goes to standard error."""

    def __init__(self, reporter: Reporter, label: str) -> None:
        self._reporter, self._label = reporter, label

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self._reporter.send("progress", label="", step=0, steps=0, says="")

    def update(self, step: int, steps: int, says: str) -> None:
        """Send the number of the step, and the text `says`."""
        self._reporter.send("progress", label=self._label, step=step, steps=steps, says=says)

    def pause(self) -> AbstractContextManager[None]:
        """Return an empty context, because nothing has to be removed."""
        return nullcontext()

    def print_above(self, lines: IO[str]) -> None:
        """Copy the output of the experiment."""
        with lines:
            for line in lines:
                print(line, end="", file=sys.stderr, flush=True)


def main() -> None:
    """Do the job that standard input names, and send its result or the message about its failure."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    reporter = Reporter(int(sys.argv[1]))
    job = json.loads(sys.stdin.readline())
    end_with_parent()
    progress_display.set(partial(ReportedProgress, reporter))
    try:
        result = JOBS[job["verb"]](job["name"], Path(job["work"]), job)
    except (Exception, KeyboardInterrupt) as error:
        if (found := describe_error(error, "harness")) is None:
            traceback.print_exc()
            found = FAULT, 3
        reporter.send("failed", says=found[0])
    else:
        reporter.send("finished", result=result)


if __name__ == "__main__":
    main()
