"""The judge of decision trees: what is right, what is a guess, what minutes cost, and the reference tree."""

from collections.abc import Mapping

import pytest
from test_decision_tree import TEXT

from grader.score import solutions
from grader.score.verdict import total_of
from grader.written.decision_tree import (
    arrivals,
    experiments,
    judge_tree,
    reference_text,
    reference_tree,
    sound_outcomes,
)
from grader.written.judgement import load_points, with_points
from harness.checks import check_names, load_check
from harness.errors import UserError
from harness.recipe import recipe_ids
from harness.written.decision_tree import HEALTHY, parse_tree
from harness.written.exercise import find_file_exercise, stub

EXERCISE = "decision_tree"
# What the tree of `TEXT` can tell apart.
KNOWN = {"huge_lr": {"overfit": "diverges"}, "forgotten_eval": {"modes": "unrepeatable"}, HEALTHY: {}}


def total(text: str, known: Mapping[str, Mapping[str, str]] | None = None) -> float | None:
    return total_of(with_points(judge_tree(text, "tree.yaml", known), EXERCISE))


def points(text: str, known: Mapping[str, Mapping[str, str]] = KNOWN) -> dict[str, float | None]:
    checks = judge_tree(text, "tree.yaml", known).checks
    return {check.id: check.points for of in checks.values() for check in of}


# --- the whole -----------------------------------------------------------------------------------------------


def test_the_reference_earns_everything_and_the_original_file_nothing() -> None:
    exercise = find_file_exercise(EXERCISE)
    assert exercise is not None
    assert total(reference_text()) == 100
    assert total(stub(exercise)) == 0
    assert {name: sum(of.values()) for name, of in load_points(EXERCISE).items()} == {
        "form": 10,
        "conclusions": 65,
        "cost": 25,
    }


def test_every_measured_recipe_is_walked_and_a_recipe_that_is_not_measured_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert set(experiments()) <= {*recipe_ids(), HEALTHY}
    missing = recipe_ids()[0]

    def trips_of(recipe: str) -> dict[str, str]:
        if recipe == missing:
            raise UserError("not measured")
        return solutions.trips_of(recipe)

    monkeypatch.setattr("grader.written.decision_tree.trips_of", trips_of)
    assert missing not in experiments()
    assert total(reference_text()) == 100


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("words", "must hold start and nodes"),
        (TEXT.replace("check: overfit", "check: overfits"), "there is no check 'overfits'"),
        (TEXT.replace("go: marks", "go: learns"), "The tree loops"),
        (
            TEXT.replace("conclude: huge_lr", "conclude: [huge_lr, loss_sum]"),
            "several names are no conclusion",
        ),
        (
            "start: a\nnodes: {a: {check: repeat, outcomes: {same: {means: abc, conclude: healthy},"
            " differs: {means: abc, conclude: healthy}}}}",
            "that is no evidence",
        ),
        (TEXT.replace("huge_lr", "loss_sum").replace("forgotten_eval", "loss_sum"), "concludes no broken"),
    ],
)
def test_a_tree_that_concludes_nothing_from_evidence_earns_nothing(text: str, said: str) -> None:
    checks = judge_tree(text, "tree.yaml", KNOWN).checks
    assert {check.points for of in checks.values() for check in of} == {0}
    assert all(said in check.reason for of in checks.values() for check in of)


# --- conclusions ---------------------------------------------------------------------------------------------


def verdicts(known: Mapping[str, Mapping[str, str]], text: str = TEXT) -> dict[str, str]:
    return {one.truth: one.verdict for one in arrivals(parse_tree(text), known)}


def test_a_conclusion_is_right_if_nothing_else_ends_there() -> None:
    assert set(verdicts(KNOWN).values()) == {"right"}
    assert points(TEXT)["breaks"] == points(TEXT)["healthy"] == 1


def test_naming_one_of_two_that_end_together_is_a_guess() -> None:
    known = {**KNOWN, "loss_sum": {"overfit": "diverges", "loss_form": "grows"}}
    assert verdicts(known) == {
        "huge_lr": "a guess",
        "loss_sum": "wrong",
        "forgotten_eval": "right",
        HEALTHY: "right",
    }
    [breaks] = [one for one in judge_tree(TEXT, "t", known).checks["conclusions"] if one.id == "breaks"]
    assert breaks.points == pytest.approx(1 / 3)
    assert "Wrong: loss_sum. Guessed: huge_lr." in breaks.reason


def test_two_that_no_check_tells_apart_count_as_one() -> None:
    assert set(verdicts({**KNOWN, "loss_sum": {"overfit": "diverges"}}).values()) == {"right"}


def test_unknown_is_not_held_against_the_others() -> None:
    known = {**KNOWN, "label_permute": {"modes": "other-mode"}}
    assert verdicts(known)["label_permute"] == "not concluded"
    assert points(TEXT, known)["breaks"] == pytest.approx(2 / 3)


def test_every_sound_outcome_of_a_check_must_lead_to_the_right_conclusion() -> None:
    check = next(name for name in check_names() if len(sound_outcomes(name)) > 1)
    first, *others = sound_outcomes(check)
    steps = {outcome.id: "unknown" for outcome in load_check(check).outcomes}
    lines = [
        f"      {name}: {{means: abc, conclude: {end}}}" for name, end in {**steps, first: HEALTHY}.items()
    ]
    text = "\n".join(["start: a", "nodes:", "  a:", f"    check: {check}", "    outcomes:", *lines])
    assert verdicts({HEALTHY: {}}, text) == {HEALTHY: "not concluded"}
    both = text.replace(
        f"{others[0]}: {{means: abc, conclude: unknown", f"{others[0]}: {{means: abc, conclude: healthy"
    )
    assert verdicts({HEALTHY: {}}, both) == {HEALTHY: "right"}


# --- form and cost -------------------------------------------------------------------------------------------


def test_a_node_that_cannot_be_reached_loses_its_points_only() -> None:
    spare = (
        TEXT
        + "  spare:\n    check: repeat\n    outcomes:\n"
        + "".join(f"      {name}: {{means: abc, conclude: unknown}}\n" for name in ("same", "differs"))
    )
    assert [id for id, value in points(spare).items() if value != 1] == ["reachable"]


def test_a_check_that_changes_nothing_costs_points_for_minutes() -> None:
    slow = TEXT.replace("start: learns", "start: first").replace(
        "nodes:\n",
        "nodes:\n  first:\n    check: repeat\n    outcomes:\n"
        "      same: {means: abc, go: learns}\n      differs: {means: abc, conclude: unknown}\n",
    )
    reached = points(slow)
    assert [id for id, value in reached.items() if value != 1] == ["minutes"]
    assert 0 < (reached["minutes"] or 0) < 1
    table = judge_tree(slow, "t", KNOWN).findings[0]
    assert [row[-1] for row in table.rows] == ["right"] * 3


def test_the_reference_makes_the_check_that_tells_most_for_its_minutes() -> None:
    tree = reference_tree(KNOWN)
    assert {node.check for node in tree.nodes.values()} == {"overfit", "modes"}
    assert [one.verdict for one in arrivals(tree, KNOWN)] == ["right"] * 3
