import json
import sys
from pathlib import Path

import pytest

from benchmarks.bench_checks import (
    LIBRARIES,
    OURS,
    Answer,
    Library,
    Subject,
    answers,
    broken_subjects,
    row,
    sound_subjects,
    verdict,
)
from benchmarks.bench_reports import Area
from benchmarks.measure import PAGE
from harness.recipes.recipe import load_recipes

RECIPES = load_recipes()[0]
THEIRS = Library("theirs", "theirs==1", {"flow": {"model"}, "coverage": {"optimizer", "model"}, "overfit": set()})


@pytest.mark.parametrize(
    ("area", "said", "of_healthy", "expected"),
    [
        ("model", ["flow", "overfit"], [], "area"),
        ("loss", ["flow", "overfit"], [], "elsewhere"),
        ("loss", ["overfit"], [], "vague"),
        ("model", [], [], "nothing"),
        ("model", ["flow"], ["flow"], "nothing"),
        ("optimizer", ["coverage", "flow"], ["flow"], "area"),
    ],
)
def test_what_a_library_finds_is_judged_by_what_is_new(
    area: Area, said: list[str], of_healthy: list[str], expected: str
) -> None:
    assert verdict(THEIRS, {area}, said, of_healthy) == expected


def test_ours_is_judged_by_the_functions_that_an_outcome_names() -> None:
    assert verdict(OURS, {"optimizer"}, ["audit some-rest"]) == "area"
    assert verdict(OURS, {"data"}, ["audit some-rest"]) == "elsewhere"
    assert verdict(OURS, {"data"}, ["overfit stalls"]) == "vague"


def test_a_check_that_no_table_lists_is_no_silent_nothing() -> None:
    with pytest.raises(KeyError):
        verdict(THEIRS, {"model"}, ["unlisted"])


def test_every_recipe_and_every_sound_variant_is_a_subject() -> None:
    broken, sound = broken_subjects(RECIPES), sound_subjects(RECIPES)
    assert [one.name for one in broken] == [one.id for one in RECIPES]
    assert all(one.areas for one in broken) and not any(one.areas for one in sound)
    assert {one.name: one.areas for one in broken}["temporal_leakage"] == {"evaluation", "data", "pipeline"}
    experiments = {one.experiment for one in broken}
    assert {one.name for one in sound} >= {f"{name}/healthy" for name in experiments}
    fewer = sound_subjects(RECIPES, 1)
    assert len(fewer) == 2 * len(experiments)
    assert len(sound) > 10 * len(experiments)


def test_a_row_counts_verdicts_alarms_and_seconds() -> None:
    subject = Subject("a/healthy", "a", "", 1, "digits")
    found = {"x": Answer({"flow": "no gradient"}, 3.0), "a/healthy": Answer({"overfit": "it stalls"}, 1.0)}
    cells = row(THEIRS, {"x": "area"}, [subject], found)
    assert cells == ["theirs 1", "1 of 1", "0 of 1", "0 of 1", "0 of 1", "1 of 1", "2.0"]


def test_answers_are_kept_and_asked_for_once(tmp_path: Path) -> None:
    [subject] = broken_subjects([one for one in RECIPES if one.id == "huge_lr"])
    cache = tmp_path / "answers.jsonl"
    first = answers(OURS, Path(sys.executable), [subject], cache, jobs=1)
    assert first["huge_lr"].said
    line = json.loads(cache.read_text())
    cache.write_text(json.dumps(line | {"said": {"kept": "it is"}}) + "\n")
    assert answers(OURS, Path(sys.executable), [subject], cache, jobs=1)["huge_lr"].said == {"kept": "it is"}


def test_the_page_has_a_row_for_each_library() -> None:
    section = PAGE.read_text().split("<!-- checks: measured -->")[1].split("<!-- end -->")[0]
    rows = [line.split(" | ")[0].strip("| ") for line in section.splitlines() if line.startswith("| ")]
    assert rows[2:] == ["ours", *(one.pin.replace("==", " ") for one in LIBRARIES[1:])]
