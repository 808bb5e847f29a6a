"""Makes many trials side by side, in processes that train one after the other."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType

from grader.selfcheck.progress import Count
from grader.selfcheck.trial import Outcome, Trial
from grader.selfcheck.trial_memory import TrialMemory
from harness.canonical_setup import run_environment
from harness.run.launch import ChildFault


class _Process:
    """One process that trains; leaving the context ends it, whatever it does."""

    def __init__(self, cache: Path) -> None:
        self._process = subprocess.Popen(
            # Unbuffered: it is killed at its end, and what an experiment printed is shown before.
            [sys.executable, "-P", "-u", "-m", "grader.selfcheck.trial_process", str(cache.absolute())],
            env=run_environment("portable"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "_Process":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        # Closes its pipes, one of which may hold a trial that it never read, and waits.
        with contextlib.suppress(BrokenPipeError), self._process:
            pass

    def outcome(self, trial: Trial) -> Outcome:
        """Return what comes of a trial. Raises `ChildFault` where the process ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(vars(trial)) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer.endswith("\n"):
            raise ChildFault("a process that trains ended before its trial did; what it said is above")
        return Outcome(**json.loads(answer))


def run_trials(
    trials: Sequence[Trial], *, jobs: int, cache: Path, progress: Count, memory: TrialMemory, turn: int = 1
) -> dict[Trial, Outcome]:
    """Return the outcome of each trial; `cache` is where MNIST and CIFAR-10 lie.

    Raises `ChildFault` where a process that trains fails; an experiment that fails is an outcome.
    """
    recalled = {trial: memory.get(trial, turn) for trial in trials}
    found = {trial: outcome for trial, outcome in recalled.items() if outcome is not None}
    missing = [trial for trial in trials if trial not in found]
    if not missing:
        return found
    idle: SimpleQueue[_Process] = SimpleQueue()

    def tried(trial: Trial) -> Outcome:
        process = idle.get()
        try:
            return process.outcome(trial)
        finally:
            idle.put(process)

    jobs = min(jobs, len(missing))
    # The processes end first, so that no thread waits for an answer when something went wrong.
    with ThreadPoolExecutor(jobs) as pool, ExitStack() as processes:
        for _ in range(jobs):
            idle.put(processes.enter_context(_Process(cache)))
        futures = {pool.submit(tried, trial): trial for trial in missing}
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                trial = futures[future]
                found[trial] = future.result()
                if not found[trial].problem:  # a data set may be there the next time
                    memory.put(trial, turn, found[trial])
                progress(done, len(missing))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def repeat_trials(
    trials: Sequence[Trial], *, jobs: int, cache: Path, progress: Count, memory: TrialMemory
) -> dict[Trial, Outcome]:
    """Make the trials once more, in new processes, the last one first, and without their checks.

    What one run leaves behind in a process can then not be what makes the next one repeat.
    """
    again = {replace(trial, checks=()): trial for trial in reversed(trials)}
    outcomes = run_trials(list(again), jobs=jobs, cache=cache, progress=progress, memory=memory, turn=2)
    return {again[bare]: outcome for bare, outcome in outcomes.items()}
