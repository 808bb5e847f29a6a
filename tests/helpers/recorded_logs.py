"""The logs of real runs (seed 42, the recipes' own data), and evidence for the grader from these logs."""

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from grader.replay.replay import Replay
from grader.score.evidence import Evidence
from grader.score.self_test import own_evidence, reference_report
from harness.recipes.catalogue import load_recipe

# To make these files, run `python -m helpers.mini_experiments` in `tests/`, in portable numerics, then `gzip -9n`.
# tests/test_recipes.py checks them.
LOGS = Path(__file__).parents[1] / "data" / "whole_logs"


def log_bytes(name: str) -> bytes:
    """Return the log of a broken run (by recipe) or of a healthy run (by experiment)."""
    return gzip.decompress((LOGS / f"{name}.log.gz").read_bytes())


@cache
def recorded_replay(name: str) -> Replay:
    """Return a replay with a recorded log but without weights."""
    return Replay(status="OK", log=log_bytes(name).decode(), log_sha256=name, checkpoint_sha256=name)


def recorded_evidence(recipe_id: str, **changes: Any) -> Evidence:
    """Return the evidence of a submission with the reference fix and report, without weights to evaluate."""
    recipe = load_recipe(recipe_id)
    broken, healthy = recorded_replay(recipe_id), recorded_replay(recipe.experiment)
    source, report = recipe.healthy_source(), reference_report(recipe, broken.log, healthy.log)
    return replace(own_evidence(recipe, source, broken, healthy, healthy, report), **changes)
