"""Mysteries: the name of a case determines the case, and a diagnosis must name all of its causes."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.grading import evidence

from grader.score.diagnostics import judge_diagnostics
from grader.score.explanation import judge_explanation, places_of_causes
from grader.score.fix import judge_fix
from grader.score.rubric import DEFAULT_RUBRIC, load_weights
from grader.score.scoring import score_evidence
from grader.score.verdict import RubricItem, total_of
from harness.checks.core.outcomes import trips_of
from harness.errors import UserError
from harness.recipes import mysteries
from harness.recipes.cases import Case
from harness.recipes.catalogue import load_recipe
from harness.recipes.mysteries import draw_mystery, load_hidden, mystery_name
from harness.recipes.recipe import LEVELS, KitRecipe, load_recipes
from harness.workspace.progress import begun_exercises, note_progress
from harness.workspace.workspace import prompt_text

pytestmark = pytest.mark.usefixtures("torch_as_found")
NAMES = [mystery_name(level, number) for level in range(1, LEVELS + 1) for number in range(1, 41)]
ALL = {name: load_hidden(name) for name in NAMES}


def first(fits: Callable[[Case], bool]) -> str:
    """Return the first mystery on the small network of digits that fits."""
    every = (ALL.get(name) or load_hidden(name) for name in [*NAMES, *(mystery_name(1, n) for n in range(41, 400))])
    return next(case.id for case in every if case.experiment == "digits_mlp" and fits(case))


def test_a_mystery_has_none_to_four_breaks_of_its_level() -> None:
    breaks = Counter(len(case.parts) for case in ALL.values())
    assert 25 <= breaks[0] <= 60
    assert breaks[2] >= 20
    assert breaks[3] and breaks[4]
    for name, case in ALL.items():
        level = int(name.split("-")[1])
        assert len(case.parts) < 2 or level >= 3
        assert len(case.parts) < 3 or level == LEVELS
        assert (case.broken_source() == case.healthy_source()) == case.is_healthy
        if len(case.parts) == 1:
            goal = load_recipe(case.parts[0]).goal
            assert goal is not None
            assert goal.level == level


def test_neither_name_nor_title_nor_prompt_nor_hints_tell_a_recipe() -> None:
    for case in ALL.values():
        said = " ".join((case.id, case.title, prompt_text(case.id), *case.hints))
        assert not [part for part in case.parts if part in said]
        assert all(("a run without the other" in hint) == (len(case.parts) > 1) for hint in case.hints)


def test_another_recipe_changes_no_name_that_does_not_draw_it(monkeypatch: pytest.MonkeyPatch) -> None:
    recipes, _ = load_recipes()
    monkeypatch.setattr(mysteries, "load_recipes", lambda: (tuple(one for one in recipes if one.id != "huge_lr"), {}))
    changed = [name for name in NAMES[:80] if load_hidden(name).content != ALL[name].content]
    assert changed == [name for name in NAMES[:80] if "huge_lr" in ALL[name].parts]


def test_the_next_mystery_holds_what_no_earlier_one_does(tmp_path: Path) -> None:
    drawn = []
    for _ in range(12):
        drawn.append(draw_mystery(begun_exercises(tmp_path), 2, None))
        (tmp_path / drawn[-1]).mkdir()
    assert len({load_hidden(name).content for name in drawn}) == 12
    note_progress(tmp_path / mystery_name(3, 1), handed_in="ada.tar.gz")
    assert draw_mystery(begun_exercises(tmp_path), 3, None) != mystery_name(3, 1)
    assert draw_mystery(begun_exercises(tmp_path), None, 17) == "mystery-1-17"


@pytest.mark.parametrize("name", ["mystery-", "mystery-0-1", "mystery-6-1", "mystery-1", "mystery-1-0", "mystery-1-x"])
def test_other_names_are_no_mysteries(name: str) -> None:
    with pytest.raises(UserError, match="a mystery has a level and a number, as in mystery-1-17"):
        load_recipe(name)


def test_a_kit_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    kit = KitRecipe.model_construct(id="huge_lr")
    monkeypatch.setattr(mysteries, "load_recipes", lambda: ((kit,), {}))
    with pytest.raises(UserError, match="A course kit has no hidden exercises"):
        load_hidden("mystery-1-1")


def points(found: tuple[RubricItem, ...]) -> dict[str, float | None]:
    return {check.id: check.points for check in found}


def test_two_causes_must_both_be_named_each_at_its_place() -> None:
    name = first(lambda case: len(case.parts) == 2 and len(set(places_of_causes(case).values())) == 2)
    whole = evidence(name)
    one, two = whole.recipe.causes
    assert whole.report is not None
    assert points(judge_explanation(whole, True)) == {
        "cause": 3, "where": 2, "first_wrong": 3, "ruled_out": 4, "form": 3,
    }  # fmt: skip
    begin, end = (whole.report.index(f"  - cause: {cause}") for cause in (one, two))
    half = dataclasses.replace(whole, report=whole.report[:begin] + whole.report[end:])
    assert points(judge_explanation(half, True)) == {
        "cause": 1.5, "where": 1, "first_wrong": 3, "ruled_out": 4, "form": 3,
    }  # fmt: skip
    assert trips_of(whole.recipe) == {**trips_of(one), **trips_of(two)}


def test_a_healthy_experiment_that_is_left_alone_earns_everything() -> None:
    whole = evidence(first(lambda case: case.is_healthy))
    assert total_of(score_evidence(whole, load_weights(DEFAULT_RUBRIC))) == 100
    blamed = "cause: huge_lr\n    where: build_optimizer\n    first_wrong: {signal: loss, step: 0, value: 2.3}"
    assert whole.report is not None
    wrong = dataclasses.replace(whole, report=whole.report.replace("cause: healthy", blamed))
    lost = points(judge_explanation(wrong, True))
    assert (lost["cause"], lost["where"], lost["first_wrong"]) == (0, 0, 0)


def test_in_a_healthy_experiment_comments_prints_and_names_are_free() -> None:
    name = first(lambda case: case.is_healthy)
    source = load_recipe(name).healthy_source()
    step = "    loss.backward()\n"
    assert source.count(step) == 1
    told = source.replace(step, f"    # Nothing is wrong here.\n{step}    print(loss.item(), loss.dtype)\n")
    assert points(judge_fix(evidence(name, told))) == {"correct": 12, "minimal": 8}


def test_an_edit_of_a_healthy_experiment_costs_points_though_it_stays_sound() -> None:
    name = first(lambda case: case.is_healthy)
    source = load_recipe(name).healthy_source()
    edited = evidence(name, source.replace("momentum=0.9", "momentum=0.85"))
    assert points(judge_fix(edited)) == {"correct": 12, "minimal": 0}
    ruined = evidence(name, source.replace("momentum=0.9", "momentum=0.0"))
    assert judge_fix(ruined)[1].points == 0
    assert points(judge_diagnostics(edited, True))["key_signal"] == 6
