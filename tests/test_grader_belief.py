"""How far the log of a fixed run is believed."""

import pytest
from grading import evidence, replay

from grader.score.evidence import doubt
from grader.score.scoring import flags_of
from grader.syntax.plain_edit import Suspicion
from harness.recipe import load_recipe

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
HEALTHY = load_recipe(RECIPE).healthy_source()
ODD = (Suspicion(line=1, message="line 1 has a ClassDef statement"),)


def test_an_edit_that_is_not_plain_is_doubted_unless_its_bytes_are_the_reference_fixs() -> None:
    same = evidence(RECIPE, suspicions=ODD)
    assert doubt(same) == ""
    assert any("cost nothing" in flag.message for flag in flags_of(same))
    other = replay(RECIPE, HEALTHY).model_copy(update={"checkpoint_sha256": "0" * 64})
    assert doubt(evidence(RECIPE, fixed=other)) == ""
    assert doubt(evidence(RECIPE, fixed=other, suspicions=ODD)) == ODD[0].message
    assert any(ODD[0].message in flag.message for flag in flags_of(evidence(RECIPE, fixed=other, suspicions=ODD)))
