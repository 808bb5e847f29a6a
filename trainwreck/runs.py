"""Run a script under watch: once as it is, once again, and once with short epochs."""

import base64
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# The checks that may speak of a run with short epochs, where data sets seem small: they look at single updates, or at
# the part that comes after the first epoch.
_SHORT = frozenset({
    "gradients", "ownership", "scaling", "shapes", "dropout", "batch-norm", "layers", "loss-form",
    "modes", "validation", "order", "snapshots", "evaluation", "metric", "inputs", "schedule", "finite", "saving",
})  # fmt: skip
# The checks that may also speak of a long run with whole epochs.
_LONG = _SHORT | {"labels", "outputs"}
_BATCHES = 3  # of a short epoch
_SHORT_STEPS, _LONG_STEPS, _AGAIN = 24, 400, 6
# Then the run goes on, to see a second training and what comes after the training.
_MORE = 1600
_SECONDS, _GRACE = 20.0, 40.0


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
    script: Path, arguments: list[str], steps: int, checks: Collection[str] | None = None
) -> dict[str, Any] | None:
    """Run the script in child processes and return what was found, or None if the first run wrote no result.

    checks: the names of the checks, or None for all.

    The result has `findings`, `errors` by check, `steps`, the `losses` of the updates, and `failure`, which is "" if
    the script did not fail. The first run's own output goes to standard error, so that standard output has only the
    findings; the other runs are silent.
    """
    found = _run(Plan(steps, None if checks is None else sorted(checks)), script, arguments, quiet=False)
    if found is None or found["failure"] or not found["steps"] or "RANK" in os.environ:
        return found
    if (checks is None or "repeat" in checks) and found["seeds"]:
        again = _run(Plan(min(_AGAIN, found["steps"]), [], seconds=_SECONDS), script, arguments, quiet=True)
        if again is not None and again["seeds"][:1] == found["seeds"][:1]:  # no seed that is drawn at random
            found["findings"] += _compare(found["losses"], again["losses"])
    # Without a loader, no epoch can be made short: the run goes on until it has seen evaluations.
    steps, able = (_SHORT_STEPS, _SHORT) if found["loaders"] else (_LONG_STEPS, _LONG)
    wanted = sorted(able if checks is None else able & set(checks))
    if wanted:
        plan = Plan(steps, wanted, batches=_BATCHES, seconds=_SECONDS, more=_MORE)
        short = _run(plan, script, arguments, quiet=True)
        known = {(one["check"], one["outcome"]) for one in found["findings"]}
        if short is not None:
            found["findings"] += [one for one in short["findings"] if (one["check"], one["outcome"]) not in known]
            found["errors"] = {**short["errors"], **found["errors"]}
    return found


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


def _run(plan: Plan, script: Path, arguments: list[str], *, quiet: bool) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory(prefix="trainwreck-", ignore_cleanup_errors=True) as folder:
        result = Path(folder, "result.json")
        text = json.dumps(asdict(plan))
        command = [sys.executable, "-m", "trainwreck.child", str(result), text, str(script), *arguments]
        path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))))
        silent = subprocess.DEVNULL
        try:
            subprocess.run(
                command,
                env={**os.environ, "PYTHONPATH": path},
                stdin=silent if quiet else None,
                stdout=silent if quiet else sys.stderr,
                stderr=silent if quiet else None,
                timeout=plan.seconds + _GRACE if plan.seconds else None,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None
        if not result.is_file() or not result.stat().st_size:
            return None
        found: dict[str, Any] = json.loads(result.read_bytes())
        return found
