"""Fixes by other authors that an earlier judge got wrong, each with the fair verdict."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.mini_experiments import edited
from helpers.sandbox_marks import needs_sandbox

from grader.score.fix import CORRECT, MASKED
from grader.selfcheck.fixes import judge_fixes
from grader.selfcheck.runs import Runs, open_runs
from harness.recipes.catalogue import load_recipe
from harness.recipes.known_edits import KnownFix

FILE = Path(__file__).parent / "data" / "failed_fixes.toml"
CASES = [
    pytest.param(exercise, case, id=f"{exercise}/{case['id']}")
    for exercise, cases in tomllib.loads(FILE.read_text(encoding="utf-8")).items()
    for case in cases
]

pytestmark = [pytest.mark.slow, needs_sandbox]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with open_runs(jobs=1) as found:
        yield found


@pytest.mark.parametrize(("exercise", "case"), CASES)
def test_a_fix_that_was_misjudged_gets_a_fair_verdict(exercise: str, case: dict[str, Any], runs: Runs) -> None:
    recipe = load_recipe(exercise)
    edits = [(find, replace) for find, replace in case["edits"]]
    ((_, (correct, minimal)),) = judge_fixes(
        [KnownFix(recipe, case["id"], "full", edited(recipe.broken_source(), *edits))], runs
    )
    if case["label"] == "right":
        assert correct.points == CORRECT, correct.reason
        assert minimal.points is not None
        assert minimal.points >= case["fair"] - CORRECT - 1, minimal.reason
    else:
        assert correct.points is not None, correct.reason
        assert correct.points <= MASKED, correct.reason
