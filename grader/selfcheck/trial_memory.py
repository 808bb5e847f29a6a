"""Remembers what came of trials: a self-check that was cut off goes on where it stopped."""

import hashlib
import json
from pathlib import Path

from grader.replay.cache import Cache
from grader.replay.provenance import machine_state
from grader.selfcheck import trial_process
from grader.selfcheck.trial import KeptOutcome, Outcome, Trial
from harness.run.provenance import harness_hash


class TrialMemory:
    """Outcomes by their trial and the turn in which it was made; with `fresh`, nothing is recalled.

    The turns are kept apart: a second run that was only remembered would repeat nothing.
    """

    def __init__(self, memory: Path, *, fresh: bool) -> None:
        self._store = Cache(memory / "trials", KeptOutcome)
        self._fresh = fresh

    def get(self, trial: Trial, turn: int) -> Outcome | None:
        """Return what came of the trial in this turn, or None."""
        kept = None if self._fresh else self._store.get(_key(trial, turn))
        return None if kept is None else Outcome(**json.loads(kept.outcome))

    def put(self, trial: Trial, turn: int, outcome: Outcome) -> None:
        """Keep what came of a trial."""
        self._store.put(_key(trial, turn), KeptOutcome(outcome=json.dumps(vars(outcome))))


def _key(trial: Trial, turn: int) -> str:
    parts = {
        **vars(trial),
        "turn": turn,
        "made by": Path(trial_process.__file__).read_text(encoding="utf-8"),
        "harness": harness_hash(),
        "machine": machine_state(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
