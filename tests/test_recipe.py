import ast
import difflib
import re
from pathlib import Path

import pytest

from harness.cli import cli
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import EXERCISES, ROOT, Edit, apply_edits, load_recipes, recipe_ids
from harness.written.exercise import file_exercise_ids

RECIPE = """\
format_version = 2
title = "A title"
experiment = "digits_mlp"
dataset = "digits"
area = "optimizer"
seed = 42
cause = "the rate is too large"
hints = ["look", '''read
    this''', "change that"]

[[break]]
find = "lr=0.1, momentum"
replace = "lr=10.0, momentum"

[[symptom]]
signal = "loss"
reduce = "max"
steps = [0, 20]
above = 50
says = "the loss passes 50"
"""
ALL = recipe_ids()
SOLUTIONS = ROOT / "solutions"


def write(folder: Path, text: str, name: str = "mine") -> Path:
    (folder / name).mkdir()
    (folder / name / "recipe.toml").write_text(text)
    (folder / name / "PROMPT.md").write_text("# A title\n")
    return folder


def test_a_recipe_is_read_as_written(tmp_path: Path) -> None:
    recipe = load_recipe("mine", write(tmp_path, RECIPE))
    assert (recipe.id, recipe.title, recipe.area, recipe.seed) == ("mine", "A title", "optimizer", 42)
    assert recipe.breaks == (Edit(find="lr=0.1, momentum", replace="lr=10.0, momentum"),)
    (symptom,) = recipe.symptoms
    assert (symptom.steps, symptom.above, symptom.below) == ((0, 20), 50.0, None)
    assert recipe.observations == ()
    assert recipe.cause == "the rate is too large"
    assert recipe.hints == ("look", "read this", "change that")
    expected = recipe.healthy_source().replace("lr=0.1, momentum", "lr=10.0, momentum")
    assert recipe.broken_source() == expected != recipe.healthy_source()


@pytest.mark.parametrize(
    ("find", "replace", "message"),
    [
        ("seed = 42", "seed = 42\ntitel = 'A title'", "titel: there is no such key: did you mean title?"),
        ("seed = 42", 'seed = 42\nid = "yours"', "remove the key id, which does not belong"),
        ('find = "lr', 'count = 2\nfind = "lr', "break #1.count: there is no such key"),
        ('cause = "the rate is too large"\n', "", "cause: this key is missing"),
        ("above = 50\n", "", "a symptom needs `above`, `below` or both"),
        ("format_version = 2", "format_version = 1", "format_version: "),
        ('"optimizer"', '"toaster"', "area: "),
        ('["look", ', "[", "hints"),
        ('"the rate is too large"', '"..."', "cause: "),
        ("seed = 42", 'seed = "42"', "seed: "),
        ('signal = "loss"', 'signal = "noise"', "symptom #1.signal: "),
        ("steps = [0, 20]", "steps = [0, 20, 30]", "symptom #1.steps"),
        ('find = "lr=0.1, momentum"', 'find = ""', "break #1.find: "),
        ('"digits_mlp"', "digits mlp", "is not TOML: "),
        ("digits_mlp", "digit_mlp", "no experiment 'digit_mlp': did you mean digits_mlp?"),
    ],
)
def test_what_is_not_a_recipe_is_refused_by_name(find: str, replace: str, message: str, tmp_path: Path) -> None:
    exercises = write(tmp_path, apply_edits(RECIPE, [Edit(find=find, replace=replace)], where="test"))
    with pytest.raises(UserError) as error:
        load_recipe("mine", exercises)
    assert str(exercises / "mine" / "recipe.toml") in str(error.value)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_symptom_may_be_limited_to_a_data_set(tmp_path: Path) -> None:
    other = '[[symptom]]\nsignal = "lr"\nreduce = "max"\nabove = 1.0\ndataset = "mnist"\nsays = "so"\n\n'
    observation = other.replace("symptom", "observation").replace("mnist", "digits")
    recipe = load_recipe("mine", write(tmp_path, f"{RECIPE}\n{other}{observation}"))
    kept = {
        dataset: ([item.signal for item in here.symptoms], [item.signal for item in here.observations])
        for dataset in ("digits", "mnist")
        for here in [recipe.on(dataset)]
    }
    assert kept == {"digits": (["loss"], ["lr"]), "mnist": (["loss", "lr"], [])}


def test_every_folder_with_a_recipe_is_one_and_a_bad_one_hides_no_other(tmp_path: Path) -> None:
    for name in ("second", "first"):
        write(tmp_path, RECIPE, name)
    (tmp_path / "drafts").mkdir()
    (tmp_path / "recipe.toml").write_text(RECIPE)
    write(tmp_path, RECIPE.replace("seed = 42\n", ""), "no_seed")
    write(tmp_path, RECIPE.replace("lr=0.1, m", "lr=0.3, m"), "no_match")
    write(tmp_path, RECIPE, "no_prompt")
    (tmp_path / "no_prompt" / "PROMPT.md").unlink()
    good, problems = load_recipes(tmp_path)
    assert [recipe.id for recipe in good] == recipe_ids(tmp_path) == ["first", "second"]
    assert set(problems) == {"no_seed", "no_match", "no_prompt"}
    for name, message in (
        ("no_seed", "seed: this key is missing"),
        ("no_match", "'lr=0.3, momentum' occurs 0 times, not once"),
        ("no_prompt", "has no PROMPT.md"),
    ):
        assert str(tmp_path / name) in problems[name]
        with pytest.raises(UserError, match=message):
            load_recipe(name, tmp_path)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("hugelr", r"no exercise 'hugelr': did you mean huge_lr\?"),
        ("zzz", "no exercise 'zzz': make exercises lists them"),
        ("../exercises/huge_lr", "no exercise"),
    ],
)
def test_an_unknown_recipe_is_answered_with_a_known_one(asked: str, answer: str) -> None:
    with pytest.raises(UserError, match=answer):
        load_recipe(asked)


def test_an_edit_must_match_exactly_once_after_those_before_it() -> None:
    edits = [Edit(find="a", replace="b"), Edit(find="b", replace="c")]
    assert apply_edits("a", edits, where="here") == "c"
    with pytest.raises(ValueError, match="here: 'b' occurs 0 times"):
        apply_edits("a", edits[::-1], where="here")
    with pytest.raises(ValueError, match="here: 'a' occurs 2 times"):
        apply_edits("aa", edits, where="here")


# --- the recipes themselves -------------------------------------------------------------------------------


def changed_lines(name: str) -> list[str]:
    recipe = load_recipe(name)
    before, after = recipe.healthy_source().splitlines(), recipe.broken_source().splitlines()
    return [line for line in difflib.ndiff(before, after) if line.startswith(("- ", "+ "))]


def test_every_recipe_can_be_used_and_has_its_solution() -> None:
    assert load_recipes()[1] == {}
    assert {path.name for path in SOLUTIONS.iterdir() if path.is_dir()} == {*ALL, *file_exercise_ids()}


@pytest.mark.parametrize("name", ALL)
def test_a_recipe_is_at_most_100_lines_in_its_two_folders_and_explained(name: str) -> None:
    files = [*(EXERCISES / name).iterdir(), *(SOLUTIONS / name).iterdir()]
    figures = {"behaviour.txt", "calibration.toml", "measured.toml"}  # which the self-check writes
    known = {"recipe.toml", "goal.toml", "PROMPT.md", "notes.md", "variants.toml"}
    assert {path.name for path in files} <= known | figures
    written = [path for path in files if path.name not in figures]
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in written) <= 100
    notes = (SOLUTIONS / name / "notes.md").read_text(encoding="utf-8")
    parts = ("Cause.", "Why it looks so.", "Fix.", "What masks it.", "Interview question.")
    assert [part for part in parts if f"\n**{part}** " not in notes] == []
    assert notes.startswith(f"# {name}: ")


@pytest.mark.parametrize("name", ALL)
def test_the_break_is_a_small_edit_that_parses_and_does_not_say_that_it_is_one(name: str) -> None:
    recipe = load_recipe(name)
    assert 1 <= len([line for line in changed_lines(name) if line[2:].strip()]) <= 6
    healthy, broken = ast.parse(recipe.healthy_source()), ast.parse(recipe.broken_source())
    assert ast.dump(healthy) != ast.dump(broken)  # not only a comment or a blank line
    assert not any("#" in line for line in changed_lines(name) if line.startswith("+"))
    assert name not in recipe.broken_source()


@pytest.mark.parametrize("name", ALL)
def test_the_prompt_gives_the_title_and_not_the_fix(name: str) -> None:
    prompt = (EXERCISES / name / "PROMPT.md").read_text(encoding="utf-8")
    recipe = load_recipe(name)
    assert prompt.startswith(f"# {recipe.title}\n")
    text = prompt.replace(f"BREAK={name}", "")
    for edit in recipe.breaks:
        for line in (*edit.find.splitlines(), *edit.replace.splitlines()):
            assert not line.strip() or line.strip() not in text
    # Names in the changed lines: called functions, keyword arguments, dotted names.
    code = "\n".join(changed_lines(name))
    names = set(re.findall(r"[A-Za-z_]+(?:\.[A-Za-z_]+)+|[A-Za-z_]+(?=[(=])", code))
    names = names or set(re.findall(r"[A-Za-z_]+", code))
    told = {word for word in names if re.search(rf"(?<![\w.]){re.escape(word)}(?![\w])", text)}
    assert not told, f"the prompt of {name} names {told}"


@pytest.mark.parametrize("name", recipe_ids())
def test_every_command_that_a_hint_names_exists(name: str) -> None:
    """Stuck students read hints, so each command in a hint must work exactly as written."""
    commands = re.findall(r"`harness ([^`]+)`", " ".join(load_recipe(name).hints))
    for words in map(str.split, commands):
        cli.commands[words[0]].make_context(words[0], words[1:])
