"""A script without any understanding gets far less than a pass. `make insightless` measures every recipe."""

import pytest
from insightless import UNTOUCHED, Earned, earned, earned_on_healthy, edits, sound_cases, table, too_much

from harness.recipes.catalogue import load_recipe
from harness.recipes.form import is_script
from harness.recipes.recipe import recipe_ids

pytestmark = pytest.mark.usefixtures("torch_as_found")
# Every fifteenth recipe with functions. A new recipe shifts the choice.
SAMPLE = [id for id in recipe_ids() if not is_script(load_recipe(id).healthy_source())][4::15]
SOUND = ("digits_mlp", "tiny_batches", "visits_mlp")


@pytest.mark.parametrize("recipe", SAMPLE)
def test_a_script_without_insight_earns_little(recipe: str) -> None:
    found = earned(recipe, ("untouched", "a print", "the batch size"))
    assert [row.what for row in found] == ["reference", "untouched", "untouched, lucky", "a print", "the batch size"]
    assert list(too_much(found, [])) == []


def test_a_number_elsewhere_is_no_insight() -> None:
    assert list(too_much(earned("huge_lr", ("a number elsewhere", "the epochs")), [])) == []


@pytest.mark.parametrize("name", SOUND)
def test_a_script_that_says_healthy_proves_nothing(name: str) -> None:
    assert list(too_much([], earned_on_healthy(name))) == []


def test_each_edit_is_one() -> None:
    recipe = load_recipe("huge_lr")
    sources = dict(edits(recipe))
    assert list(sources) == [
        "a name", "a print", "an assert", "the batch size", "the epochs", "a number elsewhere",
    ]  # fmt: skip
    assert len({recipe.broken_source(), *sources.values()}) == 7
    assert "lr=10.0" in sources["a number elsewhere"], "the fault stays"
    assert "digits_mlp" in {case.sound for case in sound_cases()}


def test_what_earns_too_much_is_named() -> None:
    rows = [Earned("huge_lr", "reference", 99.0), Earned("huge_lr", "untouched", 41.0), Earned("a", "a print", 45.0)]
    assert list(too_much(rows, [Earned("b", "healthy", 41.0)])) == [
        "huge_lr: the reference earns 99, not 100.",
        "huge_lr, untouched: the script earns 41, at most 40 are allowed.",
        "b, healthy: the script earns 41, at most 40 are allowed.",
    ]
    assert "| untouched | 1 | 41.0 | 41 | 41 | huge_lr |" in table(rows)
    assert UNTOUCHED == 40
