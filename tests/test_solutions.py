"""`solutions/`: every recipe has the whole of it, every file is what it says, and the reference fix heals."""

import ast
from pathlib import Path

import pytest

from grader.score.solutions import SOLUTIONS, VERDICTS, load_variants
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.written.exercise import exercise_ids

RECIPES = recipe_ids()
VARIANT = (
    'format_version = 1\n[[variant]]\nid = "reference"\nverdict = "full"\nsays = "x"\n'
    '[[variant.edit]]\nfind = "a"\nreplace = "b"\n'
)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_every_file_and_no_other(recipe: str) -> None:
    names = {path.name for path in (SOLUTIONS / recipe).iterdir()}
    assert names <= {"explain.md", "measured.toml", "variants.toml"}


def test_there_is_no_solution_without_an_exercise() -> None:
    assert sorted(path.name for path in SOLUTIONS.iterdir() if path.is_dir()) == sorted(exercise_ids())


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_reference_fix_is_the_healthy_experiment(recipe: str) -> None:
    found = load_recipe(recipe)
    assert load_variants(recipe)[0].source(found.broken_source()) == found.healthy_source()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_variant_is_another_program_that_parses(recipe: str) -> None:
    broken = load_recipe(recipe).broken_source()
    trees = [ast.dump(ast.parse(variant.source(broken))) for variant in load_variants(recipe)]
    assert len(set(trees)) == len(trees)
    assert ast.dump(ast.parse(broken)) not in trees


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_are_enough_variants_of_each_verdict(recipe: str) -> None:
    verdicts = [variant.verdict for variant in load_variants(recipe)]
    least = {"full": 2, "alternative": 1, "masking": 3, "overreach": 1, "wrong": 2}
    assert set(least) == set(VERDICTS)
    assert {name: verdicts.count(name) for name in VERDICTS if verdicts.count(name) < least[name]} == {}


@pytest.mark.parametrize("recipe", RECIPES)
def test_there_are_enough_variants_and_some_are_held_back(recipe: str) -> None:
    held_back = [variant.held_back for variant in load_variants(recipe)]
    assert len(held_back) >= 15
    assert 0.25 <= sum(held_back) / len(held_back) <= 0.5


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_explanation_for_instructors_has_its_parts(recipe: str) -> None:
    text = (SOLUTIONS / recipe / "explain.md").read_text(encoding="utf-8")
    for part in (
        "What is broken.",
        "Why it looks as it does.",
        "How to find it",
        "Reference fix.",
        "masked symptom",
    ):
        assert part in text


def write(folder: Path, name: str, text: str) -> Path:
    (folder / "x").mkdir()
    (folder / "x" / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VARIANT.replace("reference", "other"), "the first variant must be"),
        (VARIANT.replace('"full"', '"wrong"'), "the first variant must be"),
        (VARIANT + VARIANT.split("\n", 1)[1], "same id"),
        (VARIANT.replace('"full"', '"good"'), "verdict"),
        (VARIANT.replace("reference", "Not An Id"), "id"),
        (VARIANT.split("[[variant.edit]]")[0], "edit"),
    ],
)
def test_wrong_variants_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_variants("x", write(tmp_path, "variants.toml", text))


def test_a_missing_file_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no"):
        load_variants("nothing", tmp_path)


def test_an_edit_that_does_not_fit_says_which_variant(tmp_path: Path) -> None:
    variant = load_variants("x", write(tmp_path, "variants.toml", VARIANT))[0]
    with pytest.raises(ValueError, match="variant reference"):
        variant.source("bbb")
