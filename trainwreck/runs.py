"""Run a script under watch: once as it is, once again, and once with short epochs."""

import base64
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainwreck.patience import patient

# The checks that may speak of a run with short epochs, where data sets seem small: they look at single updates, or at
# the part that comes after the first epoch.
_SHORT = frozenset({
    "gradients", "ownership", "scaling", "shapes", "dropout", "batch-norm", "layers", "loss-form",
    "modes", "validation", "order", "snapshots", "evaluation", "metric", "inputs", "schedule", "finite", "saving",
    "log",
})  # fmt: skip
# The checks that may also speak of a long run with whole epochs.
_LONG = _SHORT | {"labels", "outputs"}
_BATCHES = 3  # of a short epoch
_SHORT_STEPS, _LONG_STEPS, _AGAIN = 24, 400, 6
# Then the run goes on, to see a second training and what comes after the training.
_MORE = 1600
_SECONDS, _GRACE = patient(20.0), patient(40.0)
_POLL = 0.01  # seconds between two looks at a child


Main = Callable[[list[str]], None]


@dataclass(frozen=True)
class Plan:
    """How a child watches a script.

    steps: the number of updates. checks: the names of the checks, or None for all. batches: the most batches of an
    epoch, or 0 for all. seconds: the time limit, which is looked at after each update, or 0 for none. trial: a pickled
    `Trial` to make after these updates, in base64, or "". more: the number of updates to watch after the trials.
    """

    steps: int
    checks: list[str] | None = None
    batches: int = 0
    seconds: float = 0.0
    trial: str = ""
    more: int = 0


def watch_script(
    script: Path,
    arguments: list[str],
    steps: int,
    checks: Collection[str] | None = None,
    *,
    say: Callable[[str], None] = lambda sentence: None,
    fork: Main | None = None,
    quiet: bool = False,
) -> dict[str, Any] | None:
    """Run the script in child processes and return what was found, or None if the first run wrote no result.

    checks: the names of the checks, or None for all. say: gets a sentence before each run. fork:
    `trainwreck.child.main` if this process may be forked for a run, because it has imported torch and computed nothing.
    quiet: whether to suppress the script's own output.

    The result has `findings`, `errors` by check, `steps`, the `losses` of the updates, and `failure`, which is "" if
    the script did not fail. The first run's own output goes to standard error, so that standard output has only the
    findings; the other runs are silent.
    """
    fork = fork if sys.platform == "linux" else None
    say(f"Running {script} for {steps} updates, then trying changes.")
    found = _run(Plan(steps, None if checks is None else sorted(checks)), script, arguments, quiet=quiet, fork=fork)
    if found is None or found["failure"] or not found["steps"] or "RANK" in os.environ:
        return found
    with suppress(KeyboardInterrupt):  # what was found so far is shown
        _run_further(found, script, arguments, checks, say, fork)
        return found
    return found | {"interrupted": True}


def _run_further(
    found: dict[str, Any],
    script: Path,
    arguments: list[str],
    checks: Collection[str] | None,
    say: Callable[[str], None],
    fork: Main | None,
) -> None:
    """Run the script twice more, and add what is found."""
    if (checks is None or "repeat" in checks) and found["seeds"]:
        say("Running it again, to compare the losses.")
        # Never forked: it needs hashes of its own, on which the order of sets depends.
        again = _run(Plan(min(_AGAIN, found["steps"]), [], seconds=_SECONDS), script, arguments, quiet=True)
        if again is not None and again["seeds"][:1] == found["seeds"][:1]:  # no seed that is drawn at random
            found["findings"] += _compare(found["losses"], again["losses"])
    # Without a loader, no epoch can be made short: the run goes on until it has seen evaluations.
    steps, able = (_SHORT_STEPS, _SHORT) if found["loaders"] else (_LONG_STEPS, _LONG)
    wanted = sorted(able if checks is None else able & set(checks))
    if wanted:
        say(f"Running it with short epochs, for at most {_SECONDS:.0f} seconds.")
        plan = Plan(steps, wanted, batches=_BATCHES, seconds=_SECONDS, more=_MORE)
        short = _run(plan, script, arguments, quiet=True, fork=fork)
        if short is not None:
            known = set(map(_identity, found["findings"]))
            new = [one for one in short["findings"] if _identity(one) not in known]
            found["findings"] += [one | {"step": None} for one in new]
            found["errors"] = {**short["errors"], **found["errors"]}


def _identity(finding: dict[str, Any]) -> tuple[Any, ...]:
    """Return what two runs have in common of a finding: its outcome, and its line if it has one."""
    place = finding["place"]
    return finding["check"], finding["outcome"], *((place["file"], place["line"]) if place["line"] else ())


def _compare(first: list[float], second: list[float]) -> list[dict[str, Any]]:
    from trainwreck.checks.repeat import Repeat
    from trainwreck.state import Watch

    check = Repeat(Watch(()))
    check.compare(first, second)
    return [finding.to_json() for finding in check.findings.values()]


def run_trial(trial: Any, steps: int, script: Path, arguments: list[str]) -> dict[str, Any]:
    """Run the script in a new process, make a trial after the watched updates, and return its answer, or `{}`."""
    text = base64.b64encode(pickle.dumps(trial)).decode()
    plan = Plan(steps, [], seconds=trial.seconds + _SECONDS, trial=text)
    return _run(plan, script, arguments, quiet=True) or {}


def _run(
    plan: Plan, script: Path, arguments: list[str], *, quiet: bool, fork: Main | None = None
) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory(prefix="trainwreck-", ignore_cleanup_errors=True) as folder:
        result = Path(folder, "result.json")
        job = [str(result), json.dumps(asdict(plan)), str(script), *arguments]
        limit = plan.seconds + _GRACE if plan.seconds else None
        ended = _spawned(job, quiet, limit) if fork is None else _forked(fork, job, quiet, limit)
        if not ended or not result.is_file():
            return None
        text = result.read_bytes()
        found: dict[str, Any] | None = json.loads(text) if text else None
        return found


def _spawned(job: list[str], quiet: bool, limit: float | None) -> bool:
    """Run a child in a new interpreter, and return whether it has ended within the time limit in seconds."""
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))))
    silent = subprocess.DEVNULL
    try:
        subprocess.run(
            [sys.executable, "-m", "trainwreck.child", *job],
            env={**os.environ, "PYTHONPATH": path},
            stdin=silent if quiet else None,
            stdout=silent if quiet else sys.stderr,
            stderr=silent if quiet else None,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return True


def _forked(main: Main, job: list[str], quiet: bool, limit: float | None) -> bool:
    """Run a child in a fork of this process, which saves the import of torch. Return the same as `_spawned`."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    process = _fork()
    if not process:
        try:
            _become_new(quiet)
            main(job)
        finally:
            os._exit(1)
    end = time.monotonic() + limit if limit else float("inf")
    try:
        while not os.waitpid(process, os.WNOHANG)[0]:
            if time.monotonic() > end:
                break
            time.sleep(_POLL)
        else:
            process = 0
    finally:
        if process:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    return not process


def _fork() -> int:
    with warnings.catch_warnings():
        # Python 3.12 warns of the threads of numpy, which wait for work and hold no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become_new(quiet: bool) -> None:
    """In a forked child: use the streams and the random numbers that a new interpreter would have."""
    if quiet:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
    else:
        os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    if "numpy" in sys.modules:
        import numpy as np

        np.random.seed()  # Python's `random` does this itself after a fork
