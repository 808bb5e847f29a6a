"""The canaries of a recipe are looked at once, and again as soon as anything is different that decides about them."""

import shutil
from pathlib import Path

import pytest
from honest_class import HonestClass
from sandbox_marks import needs_sandbox

from grader.crew import Crew
from grader.desk import Desk
from grader.replay.local_executor import LocalExecutor
from grader.replay.memory.kinds import CANARIES
from grader.replay.replay import Replay
from grader.replay.replayer import Replayer
from grader.replay.replays import Replays
from grader.replay.requests import canary_requests
from grader.replay.store import Store
from grader.report.progress import Silent
from grader.sandbox import run_in_sandbox
from grader.score import canary_check
from grader.score.canary_check import CanaryCheck
from grader.score.weights import Weights, load_weights
from grader.spool import open_spool

RECIPE = "huge_lr"


@needs_sandbox
def test_canaries_that_passed_are_looked_at_again_only_where_something_is_different(
    honest: HonestClass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = honest.remember(tmp_path / "memory")
    shutil.rmtree(memory / CANARIES.folder)
    looked_at: list[str] = []

    def look(recipe: str, *replays: object, weights: Weights) -> None:
        looked_at.append(recipe)

    monkeypatch.setattr(canary_check, "check_canaries", look)

    def times(*, weights: Weights | None = None, fresh: bool = False) -> int:
        looked_at.clear()
        replays = Replays(LocalExecutor(Replayer(run_in_sandbox, tmp_path), jobs=1), memory, fresh=False)
        with open_spool(tmp_path / "spool") as spool:
            desk = Desk(spool, memory, weights or load_weights(), fresh=fresh)
            CanaryCheck(replays, desk, Crew(1)).check([RECIPE], Silent())
        return len(looked_at)

    assert times() == 1
    assert times() == 0
    assert times(fresh=True) == 1
    others = {**load_weights(), "fix": {**load_weights()["fix"], "correct": 1.0}}
    assert times(weights=others) == 1
    assert times() == 0
    repaired = canary_requests(RECIPE)[2]
    store = Store(memory, Replay)
    replay = store.get(repaired.key)
    assert replay is not None
    store.put(repaired.key, replay.model_copy(update={"checkpoint_sha256": "0" * 64}))
    assert times() == 1
