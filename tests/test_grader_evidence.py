"""The rules for trusting the log of a fixed run."""

import ast
from pathlib import Path

import pytest
from helpers.grading import evidence, replay

from grader.score.evidence import reason_to_doubt
from grader.score.scoring import flags_of
from grader.syntax.plain_edit import Suspicion
from harness.recipes.catalogue import load_recipe

pytestmark = pytest.mark.usefixtures("torch_as_found")
RECIPE = "huge_lr"
HEALTHY = load_recipe(RECIPE).healthy_source()
ROOT = Path(__file__).parents[1]
ODD = (Suspicion(line=1, message="line 1 has a ClassDef statement"),)


def test_an_edit_that_is_not_plain_is_doubted_unless_its_bytes_are_the_reference_fixs() -> None:
    same = evidence(RECIPE, suspicions=ODD)
    assert reason_to_doubt(same) == ""
    assert any("cost no points" in flag.message for flag in flags_of(same))
    other = replay(RECIPE, HEALTHY).model_copy(update={"checkpoint_sha256": "0" * 64})
    assert reason_to_doubt(evidence(RECIPE, fixed=other)) == ""
    assert reason_to_doubt(evidence(RECIPE, fixed=other, suspicions=ODD)) == ODD[0].message
    assert any(ODD[0].message in flag.message for flag in flags_of(evidence(RECIPE, fixed=other, suspicions=ODD)))
    told = flags_of(evidence(RECIPE, fixed=other, suspicions=ODD))[0]
    assert told.id == "not checked by machine"
    assert told.message.endswith("Your instructor looks at this line.")


def test_no_text_that_a_student_reads_calls_code_suspicious() -> None:
    texts = {path: path.read_text() for path in ROOT.glob("grader/report/templates/*")}
    for path in [*ROOT.glob("grader/**/*.py"), *ROOT.glob("harness/**/*.py")]:
        tree = ast.parse(path.read_text())
        bare = {id(item.value) for item in ast.walk(tree) if isinstance(item, ast.Expr)}  # docstrings
        strings = (item for item in ast.walk(tree) if isinstance(item, ast.Constant) and id(item) not in bare)
        texts[path] = "\n".join(str(item.value) for item in strings)
    assert [path.name for path, text in texts.items() if "suspicious" in text.lower()] == []
