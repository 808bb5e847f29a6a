"""The logs of real runs (seed 42, the recipes' own data), and evidence for the grader that is made of them."""

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from grader.intake.submission import Claim
from grader.replay.replay import Replay
from grader.score.evidence import Evidence
from grader.score.reference_report import reference_report
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

# Made by `python tests/runs.py` (in portable numerics), then `gzip -9n`; tests/test_recipes.py runs them again.
LOGS = Path(__file__).parent / "whole_logs"


def log_bytes(name: str) -> bytes:
    """Return the log of a broken run, by recipe, or of a healthy one, by experiment."""
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


@cache
def recorded_replay(name: str) -> Replay:
    """Return a replay with a recorded log, and no weights."""
    return Replay(status="OK", log=log_bytes(name).decode(), log_sha256=name, checkpoint_sha256=name)


def recorded_evidence(recipe_id: str, **changes: Any) -> Evidence:
    """Return what a submission of the reference fix and the reference report gives, without weights to evaluate."""
    recipe = load_recipe(recipe_id)
    broken, healthy = recorded_replay(recipe_id), recorded_replay(recipe.experiment)
    honest = Evidence(
        recipe=recipe,
        settings=RunSettings(seed=recipe.seed, dataset=recipe.dataset),
        claims={
            "broken": Claim(broken.log.encode(), recipe_id, None),
            "fixed": Claim(healthy.log.encode(), recipe.experiment, None),
        },
        source=recipe.healthy_source(),
        report=reference_report(recipe_id, broken.log, healthy.log),
        broken=broken,
        fixed=healthy,
        reference=healthy,
    )
    return replace(honest, **changes)
