import dataclasses
import json
from typing import Any

import pytest
from grading import PLATFORM, claim, evidence, replay

from grader.evidence import Claim, Evidence, Run
from grader.replay import Replay
from grader.rubric.reproducibility import judge_reproducibility
from harness.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"


def points(of: Evidence) -> dict[str, float | None]:
    return {check.id: check.points for check in judge_reproducibility(of)}


WHOLE = {"archive": 3, "broken_log": 8, "broken_checkpoint": 7, "fixed_log": 9, "fixed_checkpoint": 8}


def test_an_honest_submission_earns_everything() -> None:
    assert points(evidence(RECIPE)) == WHOLE


@pytest.mark.parametrize(
    "changes", [{"missing": ("run.html",)}, {"command_problem": "There is no command.txt."}]
)
def test_a_file_or_a_command_that_is_missing_costs_the_archive(changes: dict[str, Any]) -> None:
    assert points(evidence(RECIPE, **changes)) == {**WHOLE, "archive": 0}


def test_a_log_that_was_edited_costs_its_points_and_the_place_is_named() -> None:
    honest = evidence(RECIPE)
    lines = honest.fixed.log.splitlines(keepends=True)
    lines[7] = json.dumps({**json.loads(lines[7]), "loss": 0.01}) + "\n"
    claims = {**honest.claims, "fixed": claim(honest.fixed, log="".join(lines).encode())}
    forged = dataclasses.replace(honest, claims=claims)
    assert points(forged) == {**WHOLE, "fixed_log": 0}
    reason = judge_reproducibility(forged)[3].reason
    assert "line 8" in reason
    assert "loss" in reason


def test_another_checkpoint_costs_its_points() -> None:
    honest = evidence(RECIPE)
    claims = {**honest.claims, "broken": claim(honest.broken, checkpoint_sha256="0" * 64)}
    assert points(dataclasses.replace(honest, claims=claims)) == {**WHOLE, "broken_checkpoint": 0}


def test_what_is_not_there_earns_nothing() -> None:
    honest = evidence(RECIPE)
    claims = {**honest.claims, "fixed": claim(honest.fixed, log=None, checkpoint_sha256=None)}
    found = points(dataclasses.replace(honest, claims=claims))
    assert found == {**WHOLE, "fixed_log": 0, "fixed_checkpoint": 0}


@pytest.mark.parametrize(("status", "expected"), [("RE", 0), ("TO", 0), ("XX", None)])
def test_a_replay_that_failed_is_lost_or_open(status: str, expected: float | None) -> None:
    fixed = Replay.model_validate({"status": status, "message": "why"})
    assert points(evidence(RECIPE, fixed=fixed)) == {
        **WHOLE,
        "fixed_log": expected,
        "fixed_checkpoint": expected,
    }


def test_another_platform_class_is_compared_by_its_figures() -> None:
    honest = evidence(RECIPE)
    arm = {**PLATFORM, "architecture": "aarch64"}
    lines = honest.fixed.log.splitlines(keepends=True)
    lines[7] = json.dumps({**json.loads(lines[7]), "loss": json.loads(lines[7])["loss"] + 1e-7}) + "\n"
    near: dict[Run, Claim] = {
        "broken": claim(honest.broken, platform=arm, checkpoint_sha256="1" * 64),
        "fixed": claim(honest.fixed, platform=arm, log="".join(lines).encode(), checkpoint_sha256="0" * 64),
    }
    again: dict[Run, Replay] = {"broken": honest.broken, "fixed": honest.fixed}
    there = dataclasses.replace(honest, claims=near, same_class=False, again=again)
    assert points(there) == WHOLE

    # Of a run that does not repeat itself here, no figures help; without a second replay nothing is decided.
    other = honest.fixed.model_copy(update={"log_sha256": "2" * 64})
    restless = dataclasses.replace(there, again={**again, "fixed": other})
    assert points(restless) == {**WHOLE, "fixed_log": 0, "fixed_checkpoint": 0}
    assert points(dataclasses.replace(there, again={}))["fixed_log"] is None

    # A healthy log in place of the broken one, or the other way round, is not within any band.
    healthy = claim(
        replay(RECIPE, load_recipe(RECIPE).healthy_source()), platform=arm, checkpoint_sha256="1" * 64
    )
    swapped = dataclasses.replace(there, claims={**near, "broken": healthy})
    assert points(swapped)["broken_log"] == 0
    broken = claim(honest.broken, platform=arm, checkpoint_sha256="0" * 64)
    assert points(dataclasses.replace(there, claims={**near, "fixed": broken}))["fixed_log"] == 0
