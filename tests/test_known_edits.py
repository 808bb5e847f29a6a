"""Known edits: every file fits its source, and an invalid file is refused with a sentence."""

import ast
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.recipes.known_edits import known_fixes, load_shared_edits, load_variants
from harness.recipes.recipe import SOLUTIONS, Recipe, experiment_names, experiment_source, load_recipes

RECIPES = load_recipes()[0]
VARIANTS = 'format_version = 1\n[full]\nmine = [["a", "b"], ["c", "d"]]\n'


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_every_known_fix_is_another_program_that_parses(recipe: Recipe) -> None:
    fixes, left_out = known_fixes(recipe)
    assert (fixes[0].id, fixes[0].source) == ("reference", recipe.healthy_source())
    trees: dict[tuple[str, str], str] = {}
    for fix in fixes:
        tree = ast.dump(ast.parse(fix.source))
        # An edit may be sound in a healthy experiment and mask a break. But two edits with one verdict must differ.
        assert trees.setdefault((fix.verdict, tree), fix.id) == fix.id
    assert ast.dump(ast.parse(recipe.broken_source())) not in {tree for _, tree in trees}
    assert not set(left_out) & {fix.id for fix in fixes if fix.verdict == "masking"}


@pytest.mark.parametrize("experiment", experiment_names())
def test_an_experiment_has_edits_of_each_verdict_that_fit_it(experiment: str) -> None:
    edits = load_shared_edits(experiment)
    assert {edit.verdict for edit in edits} == {"sound", "masking", "overreach"}
    for edit in edits:
        ast.parse(edit.source(experiment_source(experiment)))


def test_every_file_of_edits_belongs_to_an_experiment() -> None:
    names = {path.name.removesuffix(".edits.toml") for path in SOLUTIONS.glob("*.edits.toml")}
    assert names <= set(experiment_names())


def written(folder: Path, text: str) -> Path:
    (folder / "x").mkdir()
    (folder / "x" / "variants.toml").write_text(text, encoding="utf-8")
    return folder


def test_an_edit_is_a_list_of_finds_and_replacements(tmp_path: Path) -> None:
    assert load_variants("x", tmp_path) == ()
    (edit,) = load_variants("x", written(tmp_path, VARIANTS))
    assert (edit.id, edit.verdict, edit.source("-a-c-")) == ("mine", "full", "-b-d-")
    with pytest.raises(ValueError, match="edit mine: 'a' occurs 0 times"):
        edit.source("ccc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VARIANTS.replace("[full]", "[good]"), "good: write "),
        (VARIANTS.replace("mine", "Not-An-Id"), "Not-An-Id"),
        (VARIANTS.replace('["a", "b"]', '["a"]'), "an edit is a list of two strings"),
        (VARIANTS.replace('"b"', "1"), "replace"),
        (VARIANTS.replace('"a"', '""'), "find"),
        ("format_version = 1\n[full]\nmine = []\n", "at least 1 item"),
        (VARIANTS.replace("version = 1", "version = 2"), "format_version"),
        ("[[", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=r"variants\.toml .*") as error:
        load_variants("x", written(tmp_path, text))
    assert message in str(error.value)
