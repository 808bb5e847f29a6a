"""The judge of decision trees: correct conclusions, guesses, the cost in minutes, and the reference tree."""

from collections.abc import Mapping

import pytest
from test_decision_tree import TEXT, exercise, parse_tree

from grader.score.verdict import total_of
from grader.selfcheck.reference_tree import reference_text, reference_tree
from grader.written.decision_tree import (
    arrivals,
    experiments,
    judge_tree,
    judge_walks,
    measured_outcomes,
    sound_outcomes,
)
from grader.written.judgement import Judgement, with_points
from grader.written.known_answers import solution_of
from harness.checks import check_names, load_check
from harness.written.decision_tree import HEALTHY
from harness.written.exercise import stub

# The experiments that the tree of `TEXT` can distinguish.
KNOWN = {"huge_lr": {"overfit": "diverges"}, "forgotten_eval": {"modes": "unrepeatable"}, HEALTHY: {}}


def judged(text: str, known: Mapping[str, Mapping[str, str]] = KNOWN) -> Judgement:
    return judge_walks(exercise(), text, known, {}, reference_tree(known))


def points(text: str, known: Mapping[str, Mapping[str, str]] = KNOWN) -> dict[str, float | None]:
    return {check.id: check.points for of in judged(text, known).checks.values() for check in of}


def test_the_reference_follows_from_the_measured_outcomes_and_earns_everything() -> None:
    text = solution_of(exercise())
    assert text == reference_text(exercise()), "run grader selfcheck --only decision_tree --seeds 5 --write"
    for tree, total in ((text, 100), (stub(exercise()), 0)):
        assert total_of(with_points(judge_tree(exercise(), tree), exercise())) == total


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("words", "the tree"),
        (TEXT.replace("check: overfit", "check: overfits"), "there is no check 'overfits'"),
        (TEXT.replace("go: marks", "go: learns"), "The tree has a loop"),
        (TEXT.replace("conclude: huge_lr", "conclude: [huge_lr, healthy]"), "should be a valid string"),
        (
            "start: a\nnodes: {a: {check: repeat, outcomes: {same: {means: abc, conclude: healthy},"
            " differs: {means: abc, conclude: healthy}}}}",
            "the tree ignores the outcomes",
        ),
        (
            TEXT.replace("huge_lr", "unknown").replace("forgotten_eval", "huge_lr"),
            "never uses an outcome to find the cause",
        ),
    ],
)
def test_a_tree_that_concludes_nothing_from_evidence_earns_nothing(text: str, said: str) -> None:
    checks = judged(text).checks
    assert {check.points for of in checks.values() for check in of} == {0}
    assert all(said in check.reason for of in checks.values() for check in of)


def verdicts(known: Mapping[str, Mapping[str, str]], text: str = TEXT) -> dict[str, str]:
    return {one.truth: one.verdict for one in arrivals(parse_tree(text), known)}


@pytest.mark.parametrize(
    ("more", "verdict", "others", "share"),
    [
        ({}, "right", "right", 1),
        ({"overfit": "diverges", "loss_form": "grows"}, "wrong", "a guess", 1 / 3),
        ({"overfit": "diverges"}, "right", "right", 1),  # no check distinguishes it from huge_lr
        ({"modes": "other-mode"}, "not concluded", "right", 2 / 3),
    ],
)
def test_a_conclusion_is_right_if_the_checks_tell_it_from_all_others(
    more: dict[str, str], verdict: str, others: str, share: float
) -> None:
    """The tree does not name the third experiment, which ends where its outcomes lead."""
    known = {**KNOWN, **({"third": more} if more else {})}
    found = verdicts(known)
    assert found["huge_lr"] == others
    assert found["forgotten_eval"] == found[HEALTHY] == "right"
    assert found.get("third", "right") == verdict
    assert points(TEXT, known)["breaks"] == pytest.approx(share)
    assert points(TEXT, known)["healthy"] == 1


def test_every_sound_outcome_of_a_check_must_lead_to_the_right_conclusion() -> None:
    check = next(name for name in check_names() if len(sound_outcomes(name)) > 1)
    first, *others = sound_outcomes(check)

    def text(*healthy: str) -> str:
        ends = {one.id: HEALTHY if one.id in healthy else "unknown" for one in load_check(check).outcomes}
        lines = [f"      {name}: {{means: abc, conclude: {end}}}" for name, end in ends.items()]
        return "\n".join(["start: a", "nodes:", "  a:", f"    check: {check}", "    outcomes:", *lines])

    assert verdicts({HEALTHY: {}}, text(first)) == {HEALTHY: "not concluded"}
    assert verdicts({HEALTHY: {}}, text(first, *others)) == {HEALTHY: "right"}


def test_an_experiment_gives_only_the_outcomes_that_were_measured_on_it() -> None:
    """`loss_form` has several sound outcomes, and each healthy experiment has one of them."""
    found = measured_outcomes(experiments(exercise()))
    assert [one["decay"] for one in found["excess_weight_decay"]] == ["excessive"]
    assert "no-decay" in {one["decay"] for one in found[HEALTHY]}
    tree = """\
start: a
nodes:
  a:
    check: modes
    outcomes:
      agree: {means: abc, go: b}
"""
    others = [one.id for one in load_check("modes").outcomes if one.id != "agree"]
    tree += "".join(f"      {name}: {{means: abc, conclude: unknown}}\n" for name in others)
    tree += "  b:\n    check: loss-form\n    outcomes:\n"
    for one in load_check("loss_form").outcomes:
        end = {"grows": "loss_sum", "agrees": HEALTHY}.get(one.id, "unknown")
        tree += f"      {one.id}: {{means: abc, conclude: {end}}}\n"
    ends = {one.truth: one for one in arrivals(parse_tree(tree), experiments(exercise()), found)}
    assert ends["loss_sum"].verdict == "right"
    assert {walked.conclusion for walked in ends[HEALTHY].walks} == {HEALTHY}
    without = {one.truth: one for one in arrivals(parse_tree(tree), experiments(exercise()))}
    assert {walked.conclusion for walked in without[HEALTHY].walks} == {HEALTHY, "unknown"}


def test_a_check_that_changes_nothing_costs_points_for_minutes() -> None:
    first = """\
nodes:
  first:
    check: repeat
    outcomes:
      same: {means: abc, go: learns}
      differs: {means: abc, conclude: unknown}
"""
    slow = TEXT.replace("start: learns", "start: first").replace("nodes:\n", first)
    reached = points(slow)
    assert [id for id, value in reached.items() if value != 1] == ["minutes"]
    assert 0 < (reached["minutes"] or 0) < 1
    table = judged(slow).findings[0]
    assert [row[-1] for row in table.rows] == ["right"] * 3


def test_the_reference_makes_the_check_that_tells_most_for_its_minutes() -> None:
    tree = reference_tree(KNOWN)
    assert {node.check for node in tree.nodes.values()} == {"overfit", "modes"}
    assert [one.verdict for one in arrivals(tree, KNOWN)] == ["right"] * 3
