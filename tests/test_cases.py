"""Twins, decoys and pairs of breaks: the file fits the recipes, and each problem is reported."""

from itertools import chain

import pytest

from grader.selfcheck.cases import (
    cases_page,
    combination_fixes,
    is_worse,
    silence_problems,
    silent_reasons,
    twin_problems,
    what_parts,
)
from grader.selfcheck.fixes import judge_fixes, problem_of
from grader.selfcheck.runs import open_runs
from harness.checks.core.outcomes import outcomes_of, trips_of
from harness.recipes.cases import case_of, load_cases
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import load_recipes

CASES = load_cases()
SILENT = silent_reasons(load_recipes()[0])
OUTCOMES = {name: outcomes_of(name) for name in chain.from_iterable(twins.exercises for twins in CASES.twins)}


def test_checks_tell_twins_apart() -> None:
    assert len(CASES.twins) >= 15
    assert list(twin_problems(CASES, OUTCOMES)) == []
    same = {name: {"overfit": "stalls"} for name in OUTCOMES}
    assert len(list(twin_problems(CASES, same))) == len(CASES.twins)
    assert what_parts({"overfit": "stalls", "audit": "none-moves"}, {"overfit": "reaches", "audit": "all-move"}) == [
        "audit", "overfit",
    ]  # fmt: skip


def test_a_break_that_no_check_finds_is_declared_silent() -> None:
    trips = {recipe.id: trips_of(recipe.id) for recipe in load_recipes()[0]}
    assert list(silence_problems(SILENT, trips)) == []
    assert list(silence_problems(SILENT, {"huge_lr": {}, "momentum_too_high": {"overfit": "stalls"}})) == [
        "huge_lr: no check finds the break. Explain why in its notes.md, under **Why no check finds it.**",
        "momentum_too_high: its notes.md says that no check finds the break, but overfit finds the break.",
    ]


def test_decoys_are_edits_of_healthy_experiments() -> None:
    assert len(CASES.decoy) >= 8
    sources = [decoy.source() for decoy in CASES.decoy]
    assert len(set(sources)) >= 6


def test_the_page_tells_of_every_case() -> None:
    page = cases_page(CASES, OUTCOMES, SILENT)
    names = [name for twins in CASES.twins for name in twins.exercises]
    names += [decoy.id for decoy in CASES.decoy] + [name for ids in (*CASES.together, *CASES.several) for name in ids]
    assert all(name in page for name in (*names, *SILENT))


@pytest.mark.parametrize("ids", [*CASES.together, *CASES.several], ids="+".join)
def test_several_breaks_fit_into_one_experiment(ids: tuple[str, ...]) -> None:
    fixes = combination_fixes(*map(load_recipe, ids))
    assert len({fixes[0].recipe.broken_source(), *(fix.source for fix in fixes)}) == len(ids) + 2


def test_two_breaks_of_different_experiments_do_not() -> None:
    with pytest.raises(ValueError, match="break different experiments"):
        case_of("both", [load_recipe("huge_lr"), load_recipe("forgotten_eval")])


@pytest.mark.slow
def test_one_fix_of_two_earns_half_and_both_earn_all() -> None:
    pair = map(load_recipe, ("missing_zero_grad", "double_softmax"))
    with open_runs(jobs=2) as runs:
        assert [problem_of(fix, checks) for fix, checks in judge_fixes(combination_fixes(*pair), runs)] == ["", "", ""]


@pytest.mark.parametrize(
    ("accuracies", "worse"),
    [
        ([0.911, 0.922, 0.93], True),  # SGD(dampening=0.9): every step is ten times shorter
        ([0.926, 0.941, 0.953], False),  # a long warm-up
        ([None, None, None], False),
    ],
)
def test_a_decoy_that_costs_accuracy_is_reported(accuracies: list[float | None], *, worse: bool) -> None:
    assert is_worse(accuracies, [0.93, 0.949, 0.973]) == worse
