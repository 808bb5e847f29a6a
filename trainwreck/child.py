"""Run a script under watch, in a process of its own: `python -m trainwreck.child RESULT PLAN script.py arguments`.

The process ends after the watched updates, without the end of the script, and writes its findings to RESULT as JSON.
PLAN is a JSON object with the fields of `Plan`. Files that the script writes go to the folder of RESULT.
"""

import base64
import json
import multiprocessing
import os
import pickle
import runpy
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from trainwreck import program
from trainwreck.checks import ALL
from trainwreck.guard import redirect_writes
from trainwreck.hooks import Hooks
from trainwreck.runs import Plan, run_trial
from trainwreck.state import Watch
from trainwreck.trial import send_answer


def main(arguments: list[str]) -> None:
    """Watch the script and end the process. Exit status 0 says that RESULT is complete."""
    result, text, script, *rest = arguments
    plan = Plan(**json.loads(text))
    file = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    tempfile.tempdir = str(Path(result).resolve().parent)  # which the parent removes
    redirect_writes(Path(tempfile.tempdir))
    child = Child(plan, file)
    child.watch.run_fresh = lambda trial: run_trial(trial, child.watch.steps, Path(script), rest)
    sys.argv = [script, *rest]
    sys.path[0] = str(Path(script).resolve().parent)
    child.hooks.install()
    try:
        program.run_program(script)
    except SystemExit as stop:
        child.watch.ended = True
        child.finish(f"the script exited with status {stop.code}" if stop.code else "")
    except BaseException as error:  # also KeyboardInterrupt: the parent decides
        child.finish(traceback_of_script(error))
    child.watch.ended = True
    child.finish()


class Child:
    """The watch of one script in this process. file: the descriptor of the file for the result."""

    def __init__(self, plan: Plan, file: int) -> None:
        self.watch = Watch(
            [check for check in ALL if plan.checks is None or check.name in plan.checks], plan.steps, plan.batches
        )
        self.watch.ends_here = True
        self.hooks = Hooks(self.watch, on_update=self.look)
        self._plan, self._file = plan, file
        self._more = plan.more
        self._end = time.monotonic() + plan.seconds if plan.seconds else float("inf")

    def look(self) -> None:
        """After an update, end the watch or the trial if it is over, or go on after the trials."""
        watch, plan = self.watch, self._plan
        if watch.trial is not None:
            if watch.trial.is_over(watch.step):
                self._end_trial()
        elif plan.trial and watch.is_over:
            watch.trial = pickle.loads(base64.b64decode(plan.trial))  # noqa: S301 - the parent wrote it
            watch.trial.begin(watch.step)
        elif watch.is_over and self._more and not watch.is_late(self._end):
            watch.end()
            if watch.run_trials():
                watch.steps, self._more = watch.steps + self._more, 0
        elif watch.is_over or watch.is_late(self._end):
            self.finish()

    def finish(self, failure: str = "") -> None:
        """Make the trials, write the findings, and end without running the script's exit handlers.

        Return only in a child that makes a trial.
        """
        watch = self.watch
        if watch.trial is not None:  # a child whose script has ended
            self._end_trial()
        watch.end()
        has_made_trials = self._more < self._plan.more
        # A script may fail because its epochs are short: one that counts each class, or expects all examples.
        if not has_made_trials and (not failure or self._plan.batches) and not watch.run_trials():
            return
        self.hooks.remove()
        found: dict[str, Any] = {
            "findings": [finding.to_json() for finding in watch.findings],
            "errors": watch.errors,
            "steps": watch.step,
            "losses": watch.losses,
            "seeds": watch.seeds,
            "loaders": bool(watch.loaders),
            "failure": failure,
        }
        self._write(found)
        for worker in multiprocessing.active_children():
            worker.kill()  # a worker of a loader that ended itself would miss the folder that the parent removes
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    def _end_trial(self) -> None:
        """End a trial in the process that makes it: a forked one, or this one."""
        answer = self.watch.answer()
        if not self._plan.trial:
            send_answer(answer)
        self._write(answer)
        os._exit(0)

    def _write(self, value: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(value).encode())


def traceback_of_script(error: BaseException) -> str:
    """Return the traceback of an exception, without the frames that run the script and without the hooks."""
    own = (runpy.__file__, "<frozen runpy>")
    found = traceback.TracebackException.from_exception(error)
    shown: traceback.TracebackException | None = found
    while shown is not None:
        frames = [frame for frame in shown.stack if frame.filename not in own and not _is_ours(frame.filename)]
        shown.stack = traceback.StackSummary.from_list(frames)
        shown = shown.__cause__ or shown.__context__
    return "".join(found.format())


def _is_ours(file: str) -> bool:
    return Path(file).parent == Path(__file__).parent


if __name__ == "__main__":
    main(sys.argv[1:])
