import json
import re
from pathlib import Path

import pytest
from commands import mistake, succeed
from run_files import make_workspace

from harness.errors import UserError
from harness.hints import LEVELS, encoded, give_hint, hints_given, load_hints
from harness.recipe import Recipe, load_recipe, recipe_ids
from harness.submission.submission import build_submission
from harness.workspace import remove_workspace

ONE = '[[hint]]\nsays = "look"\n'


@pytest.mark.parametrize("recipe_id", recipe_ids())
def test_each_recipe_has_three_that_lead_from_where_to_look_to_what_to_change(recipe_id: str) -> None:
    first, second, third = load_hints(recipe_id)
    recipe = load_recipe(recipe_id)
    assert isinstance(recipe, Recipe)
    # The first sends to evidence, the second to a function, and none gives the line to type.
    assert f"`harness " in first and recipe_id in first  # noqa: F541
    functions = re.findall(r"^def (\w+)", recipe.broken_source(), re.MULTILINE)
    assert not any(name in first for name in functions if name not in ("evaluate", "load_data"))
    assert any(name in second for name in functions)
    for edit in recipe.breaks:
        for code in filter(None, (edit.find.strip(), edit.replace.strip())):
            assert code not in " ".join((first, second, third))


def test_a_level_is_given_after_the_one_before_and_noted(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert hints_given(workspace) == 0
    with pytest.raises(UserError, match=r"Hint 2 comes after hint 1: harness hint huge_lr --level 1\."):
        give_hint(workspace, 2)
    assert hints_given(workspace) == 0
    texts = load_hints("huge_lr")
    assert give_hint(workspace, 1) == texts[0]
    assert give_hint(workspace, 2) == texts[1]
    assert give_hint(workspace, 1) == texts[0]
    assert hints_given(workspace) == 2
    # Starting over does not unsay them.
    remove_workspace(tmp_path, "huge_lr")
    assert hints_given(make_workspace(tmp_path)) == 2


@pytest.mark.parametrize(
    "note", ["", "[]", '{"given": true}', '{"given": 4}', '{"given": -1}', "[" * 100_000]
)
def test_a_note_that_cannot_be_read_is_none(note: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    give_hint(workspace, 1)
    (path,) = (tmp_path / ".hints").iterdir()
    path.write_text(note)
    assert hints_given(workspace) == 0


def test_the_manifest_says_how_many_and_nothing_where_there_were_none(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert "hints" not in json.loads(build_submission(workspace, "ada")["manifest.json"])
    for level in range(1, LEVELS + 1):
        give_hint(workspace, level)
        assert json.loads(build_submission(workspace, "ada")["manifest.json"])["hints"] == level


def test_encoded_they_are_the_same_and_cannot_be_read_in_passing(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text((Path("exercises/huge_lr/recipe.toml")).read_text())
    texts = ("look \u2192 here", 'a "quoted" one', "change it")
    (tmp_path / "mine" / "hints.toml").write_text(encoded(texts))
    assert load_hints("mine", tmp_path) == texts
    assert not any(text in encoded(texts) for text in texts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE * 3, "format_version: Field required"),
        ("format_version = 1\n" + ONE * 2, "at least 3 items"),
        (
            "format_version = 1\n" + ONE * 2 + '[[hint]]\nsays = "x"\nbase64 = "eA=="\n',
            "either says or base64",
        ),
        ("format_version = 1\n" + ONE * 2 + '[[hint]]\nbase64 = "?"\n', "holds no hints: "),
        ("format_version = 1\n" + ONE * 2 + '[[hint]]\nsay = "x"\n', "hint.2.say: Extra inputs"),
        ("[[", "holds no hints: "),
    ],
    ids=["version", "two", "both", "no base64", "key", "no TOML"],
)
def test_hints_that_are_not_whole_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "recipe.toml").write_text((Path("exercises/huge_lr/recipe.toml")).read_text())
    (tmp_path / "mine" / "hints.toml").write_text(text)
    with pytest.raises(UserError, match=r"hints\.toml") as error:
        load_hints("mine", tmp_path)
    assert message in str(error.value)


def test_the_command_shows_one_and_says_how_to_ask_for_the_next(tmp_path: Path) -> None:
    make_workspace(tmp_path / "work")
    texts = load_hints("huge_lr")
    said = succeed("hint", "huge_lr", cwd=tmp_path)
    assert said.startswith("Next:\n  harness hint huge_lr --level 1 (where to look;")
    said = succeed("hint", "huge_lr", "--level", "1", cwd=tmp_path)
    assert "Hint 1 of 3, where to look:\n" in said
    assert texts[0] in " ".join(said.split())
    assert texts[1] not in " ".join(said.split())
    assert "  harness hint huge_lr --level 2 (which function to read;" in said
    assert "Hint 3 comes after hint 2" in mistake("hint", "huge_lr", "--level", "3", cwd=tmp_path)
    assert "is not a whole number from 1 to 3" in mistake("hint", "huge_lr", "--level", "4", cwd=tmp_path)
    assert "There is no workspace" in mistake("hint", "loss_sum", "--level", "1", cwd=tmp_path)
    assert "backprop_mlp trains nothing" in mistake("hint", "backprop_mlp", cwd=tmp_path)
