"""Fixes by other hands that an earlier judge got wrong, each with the verdict that a fair person gives."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_marks import needs_sandbox

from grader.replay.request import recipe_of
from grader.score.fix import CORRECT, MASKED, MINIMAL
from grader.selfcheck.command import judge_fixes
from grader.selfcheck.runs import Runs, open_runs
from harness.solutions import KnownFix

FAILED = Path(__file__).parent / "labelled" / "failed"
LABELS = json.loads((FAILED / "labels.json").read_text(encoding="utf-8"))

pytestmark = [pytest.mark.slow, needs_sandbox]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with open_runs(jobs=1) as found:
        yield found


# Cases that still wait for the instructor.
OPEN: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.xfail(strict=True)] if case in OPEN else []) for case in LABELS]
)
def test_a_fix_that_was_misjudged_gets_a_fair_verdict(case: str, runs: Runs) -> None:
    label = LABELS[case]
    exercise = case.partition("/")[0]
    source = (FAILED / f"{case}.py").read_text(encoding="utf-8")
    fix = KnownFix(recipe_of(exercise), case, "full", source)
    ((_, (correct, minimal)),) = judge_fixes([fix], runs)
    if label["label"] == "right":
        assert correct.points == CORRECT, correct.reason
        assert minimal.points is not None
        assert minimal.points >= label["fair_points_of_20"] - CORRECT - 1, minimal.reason
        assert minimal.points <= MINIMAL
    else:
        assert correct.points is not None, correct.reason
        assert correct.points <= MASKED, correct.reason
