"""Gates: points that nobody earns without insight, the settings in a rubric, and the messages."""

from pathlib import Path
from typing import Any

import pytest
from helpers.made_up_class import RUBRIC, changed, make_row, scores_of
from helpers.page_reader import Page

from grader.course.decisions import Decision, apply_decisions
from grader.course.gradescope import Settings, results
from grader.report.gradebook import feedback
from grader.report.pages import render_submission
from grader.score.gates import limits_of, with_gates
from grader.score.release import seen_by_student
from grader.score.rubric import DEFAULT_RUBRIC, Gates, load_weights
from grader.score.verdict import RubricItem, SubmissionScore, lost, open_item, total_of, with_criteria
from harness.errors import UserError
from harness.recipes.cases import CaseTable
from harness.recipes.catalogue import load_recipe

BROKEN = load_recipe("huge_lr")
HEALTHY = CaseTable(id="a1", experiment="digits_mlp").case()
WRONG_CAUSE = changed("explanation.cause", lost, "It is another one.", "")
WRONG_FIX = changed("fix.correct", lost, "It is still there.", "") | changed("fix.minimal", lost, "It is wrong.", "")
OPEN_FIX = changed("fix.correct", open_item, "?") | changed("fix.minimal", open_item, "?")
MASKED = changed("fix.correct", lost, "It is hidden.", "", points=4.0)


def row(changes: dict[str, RubricItem], recipe: Any = BROKEN, gates: Gates = RUBRIC.gates) -> SubmissionScore:
    """Return a row with these items, as the scoring makes it."""
    plain = make_row("ada_steep", "ada", "steep", changes)
    checks = with_gates({name: score.checks for name, score in plain.criteria.items()}, gates)
    gated = {f"{name}.{check.id}": check for name, found in checks.items() for check in found}
    plain = make_row("ada_steep", "ada", "steep", gated, limits=tuple(limits_of(recipe, gates)))
    return with_criteria(plain, plain.criteria)


def points(of: SubmissionScore) -> dict[str, float | None]:
    return {f"{name}.{check.id}": check.points for name, score in of.criteria.items() for check in score.checks}


def test_a_fixed_run_that_fixes_nothing_earns_nothing() -> None:
    found = row(WRONG_FIX)
    assert found.total == 100 - 20 - 21
    taken = {name for name, value in points(found).items() if value == 0} - WRONG_FIX.keys()
    assert taken == {"reproducibility.fixed_log", "reproducibility.fixed_checkpoint", "diagnostics.fixed_complete"}
    assert row(MASKED).total == 92, "a masked cause keeps them"
    assert row(WRONG_FIX, gates=Gates(fixed_run=False)).total == 80


def test_a_wrong_cause_keeps_nothing_of_the_diagnosis() -> None:
    found = row(WRONG_CAUSE)
    assert found.criteria["explanation"].points == 3, "its form"
    assert found.total == 88, "the fix is right"
    assert row(WRONG_CAUSE, gates=Gates(wrong_cause=False)).total == 97
    half = changed("explanation.cause", lost, "One of two.", "", points=1.5)
    assert row(half).total == 98.5, "one of two causes is not wrong"
    waits = WRONG_CAUSE | changed("explanation.where", open_item, "?")
    assert row(waits).status == "graded", "the instructor need not decide what earns nothing"


def test_without_cause_and_fix_a_total_is_limited() -> None:
    found = row(WRONG_CAUSE | MASKED)
    assert (total_of(found.criteria), found.total, found.withheld) == (80, 40, 40)
    assert found.reason == "The rubric limits the total to 40 instead of 80. Neither the cause nor the fix is correct."
    assert row(WRONG_CAUSE | WRONG_FIX).total == 40
    assert row(WRONG_CAUSE | WRONG_FIX, gates=Gates(no_insight=30.0)).total == 30
    assert row(WRONG_CAUSE | WRONG_FIX, gates=Gates(no_insight=False)).total == 47
    low = row(WRONG_CAUSE | WRONG_FIX | changed("diagnostics.broken_complete", lost, "No log.", ""))
    assert (low.total, low.limit, low.reason) == (39, None, "")
    assert row(WRONG_CAUSE | OPEN_FIX).total is None, "the fix may be right yet"


def test_a_healthy_case_needs_proof() -> None:
    assert row({}, HEALTHY).total == 100
    unproved = changed("explanation.ruled_out", lost, "Three areas.", "", points=3.0)
    assert row(unproved, HEALTHY).total == 40
    assert row(unproved, BROKEN).total == 99
    assert row(unproved, HEALTHY, Gates(healthy_unproved=False)).total == 99
    assert row(WRONG_CAUSE, HEALTHY).total == 40, "a right fix is no insight: there is nothing to fix"
    assert row(WRONG_CAUSE, HEALTHY, Gates(healthy_unproved=False, healthy_blamed=50.0)).total == 50


def test_a_decision_opens_a_gate() -> None:
    found = row(WRONG_CAUSE | MASKED)
    decision = Decision(submission="ada_steep", check="fix.correct", points=12, comment="Read it together.")
    decided = apply_decisions(scores_of(found), [decision]).submissions[0]
    assert (decided.total, decided.limit) == (88, None)
    [undone] = apply_decisions(scores_of(decided), []).submissions
    assert (undone.total, undone.reason) == (40, found.reason)


def test_every_view_says_which_gate_lowered_the_total() -> None:
    found = row(WRONG_CAUSE | MASKED)
    page = "".join(Page(render_submission(found, None)).text)
    assert "The rubric limits the total to 40 instead of 80. Neither the cause nor the fix is correct." in page
    assert "The rubric limits the total to 40: −40" in page
    assert "Neither the cause nor the fix is correct." in feedback(found)
    given = results([found], Settings(exercises=("steep",)))
    assert given["score"] == 40
    assert any("Neither the cause" in test["output"] for test in given["tests"])


def test_before_the_solution_no_gate_tells_what_is_wrong() -> None:
    found = row(WRONG_CAUSE, HEALTHY)
    early = seen_by_student(found, "feedback", "More later.")
    page = "".join(Page(render_submission(early, None)).text)
    assert "The rubric limits the total to 40" in page and "Nothing is broken" not in page
    assert seen_by_student(found, "score").limits == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("no_insigt = 40", r"gates.no_insigt: .*did you mean no_insight\?"),
        ("fixed_run = 3", "gates.fixed_run: write true or false"),
        ("no_insight = true", "gates.no_insight"),
        ("no_insight = -1", "gates.no_insight"),
        ("no_insight = 200", "gates.no_insight"),
    ],
)
def test_a_wrong_gate_is_refused_by_name(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rubric.toml"
    text = DEFAULT_RUBRIC.read_text().partition("[gates]")[0]
    path.write_text(f"{text}[gates]\n{line}\n")
    with pytest.raises(UserError, match=said):
        load_weights(path)


def test_a_rubric_may_leave_gates_out_change_them_and_switch_them_off(tmp_path: Path) -> None:
    path = tmp_path / "rubric.toml"
    text = DEFAULT_RUBRIC.read_text().partition("[gates]")[0]
    path.write_text(text)
    assert load_weights(path).gates == load_weights().gates == Gates()
    path.write_text(f"{text}[gates]\nno_insight = 30\nfixed_run = false\nhealthy_blamed = false\n")
    gates = load_weights(path).gates
    assert gates == Gates(no_insight=30.0, fixed_run=False, healthy_blamed=False)
    assert [limit.id for limit in limits_of(HEALTHY, gates)] == ["healthy_unproved"]


def test_one_right_cause_of_four_is_insight() -> None:
    breaks = ("accuracy_broadcast", "detached_hidden", "loss_sum", "label_noise")
    case = CaseTable(id="a2", experiment="digits_mlp", breaks=breaks).case()
    one = changed("explanation.cause", lost, "One of four.", "", points=0.75)
    assert row(one | MASKED, case).limit is None
    assert row(WRONG_CAUSE | MASKED, case).total == 40
