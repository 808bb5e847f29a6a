import json
from pathlib import Path

import pytest

from benchmarks.bench_checks import HEADINGS, broken_subjects, row, sound_subjects
from benchmarks.judging import Answer, Subject, answers, areas_of, verdict
from benchmarks.measure import PAGE
from harness.checks import load_check
from harness.recipes.form import is_script
from harness.recipes.recipe import Area, load_recipes
from harness.run.settings import RunSettings

RECIPES = [recipe for recipe in load_recipes()[0] if not is_script(recipe.healthy_source())]
SETTINGS = RunSettings(seed=1, dataset="digits")


def test_an_outcome_points_at_the_places_that_it_names() -> None:
    assert areas_of(load_check("data").outcome("overlap")) == {"data", "pipeline"}
    assert areas_of(load_check("audit").outcome("some-rest")) == {"optimizer", "model"}
    assert areas_of(load_check("modes").outcome("other-mode")) == {"evaluation", "deployment"}
    assert areas_of(load_check("overfit").outcome("stalls")) == set()
    assert areas_of(load_check("modes").outcome("agree")) == set()


@pytest.mark.parametrize(
    ("area", "said", "of_sound", "expected"),
    [
        ("model", ["audit some-rest", "overfit stalls"], [], "area"),
        ("data", ["audit some-rest", "overfit stalls"], [], "elsewhere"),
        ("data", ["overfit stalls"], [], "vague"),
        ("model", [], [], "silent"),
        ("model", ["audit some-rest"], ["audit some-rest"], "silent"),
        ("data", ["data overlap", "audit some-rest"], ["audit some-rest"], "area"),
        ("model", ["audit crash"], [], "silent"),
    ],
)
def test_a_finding_is_judged_by_what_is_new(area: Area, said: list[str], of_sound: list[str], expected: str) -> None:
    assert verdict({area}, said, of_sound) == expected


def test_an_outcome_that_no_check_has_is_no_silent_nothing() -> None:
    with pytest.raises(KeyError):
        verdict({"model"}, ["audit unlisted"])


def test_every_recipe_and_every_sound_variant_is_a_subject() -> None:
    broken, sound = broken_subjects(RECIPES), sound_subjects(RECIPES)
    assert [one.name for one in broken] == [one.id for one in RECIPES]
    assert all(one.areas for one in broken) and not any(one.areas for one in sound)
    assert {one.name: one.areas for one in broken}["temporal_leakage"] == {"evaluation", "data", "pipeline"}
    experiments = {one.experiment for one in RECIPES}
    assert {one.name for one in sound} >= {one.sound for one in broken} == {f"{name}/healthy" for name in experiments}
    fewer = sound_subjects(RECIPES, 1)
    assert len(fewer) == 2 * len(experiments)
    assert len(sound) > 10 * len(experiments)


def test_the_row_counts_verdicts_alarms_and_seconds() -> None:
    broken = Subject("x", "", SETTINGS, frozenset({"model"}), "a/healthy")
    sound = Subject("a/healthy", "", SETTINGS)
    found = {"x": Answer(["audit some-rest"], 3.0), "a/healthy": Answer(["overfit stalls"], 1.0)}
    assert row([broken], [sound], found) == ["1 of 1", "0 of 1", "0 of 1", "0 of 1", "1 of 1", "2.0"]


@pytest.mark.slow
def test_answers_are_kept_and_asked_for_once(tmp_path: Path) -> None:
    [subject] = broken_subjects([one for one in RECIPES if one.id == "huge_lr"])
    raises = Subject("raises", subject.source.replace("loss.backward()", "loss.backwards()"), subject.settings)
    cache = tmp_path / "answers" / "checks.jsonl"
    first = answers([subject, raises], 2, cache)
    assert "learning_rate too-large" in first["huge_lr"].said
    assert "overfit crash" in first["raises"].said
    assert verdict(subject.areas, first["huge_lr"].said) == "area"
    key, _, seconds = json.loads(cache.read_text().splitlines()[0])
    cache.write_text(json.dumps([key, ["kept"], seconds]) + "\n")
    assert answers([subject], 1, cache) == {"huge_lr": Answer(["kept"], seconds)}


def test_the_page_has_the_table_that_the_benchmark_writes() -> None:
    section = PAGE.read_text(encoding="utf-8").split("<!-- checks: measured -->")[1].split("<!-- end -->")[0]
    assert f"| {' | '.join(HEADINGS)} |" in section
