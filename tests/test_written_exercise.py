from pathlib import Path

import pytest

from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import EXERCISES, Recipe, recipe_ids
from harness.written.exercise import (
    FunctionExercise,
    exercise_ids,
    file_exercise_ids,
    find_file_exercise,
    load_exercise,
    stub,
)

TOML = """\
format_version = 1
kind = "functions"
title = "By hand"
file = "mine.py"
sizes = ["B"]

[inputs]
x = { draw = "normal", shape = ["B"] }

[[call]]
function = "double"
arguments = ["x"]
returns = "y"

[[case]]
id = "small"
says = "a small batch"

[[item]]
id = "code.values"
title = "The values are right"
points = 100
outputs = ["y"]
"""


def write(folder: Path, text: str = TOML) -> Path:
    (folder / "mine").mkdir()
    (folder / "mine" / "judge.toml").write_text(text)
    (folder / "mine" / "mine.py").write_text("begin here\n")
    return folder


def test_an_exercise_is_what_its_file_says_and_has_no_run(tmp_path: Path) -> None:
    exercises = write(tmp_path)
    exercise = load_exercise("mine", exercises)
    assert isinstance(exercise, FunctionExercise)
    assert (exercise.id, exercise.outputs, exercise.file) == ("mine", ["y"], "mine.py")
    assert stub(exercise, exercises) == "begin here\n"
    with pytest.raises(UserError, match="The exercise mine has no training run"):
        load_recipe("mine", exercises)


def test_all_exercises_are_listed_the_broken_runs_first() -> None:
    assert exercise_ids() == [*recipe_ids(), *file_exercise_ids()]
    assert isinstance(load_exercise(recipe_ids()[0]), Recipe)
    for name in file_exercise_ids():
        exercise = find_file_exercise(name)
        assert exercise is not None
        assert (EXERCISES / name / exercise.file).is_file()


@pytest.mark.parametrize(
    ("find", "replace", "said"),
    [
        ('kind = "functions"', 'kind = "function"', "has an unknown kind: did you mean functions?"),
        ('kind = "functions"\n', "", "has an unknown kind"),
        ("points = 100", "points = 90", "the points of all items add up to 90, not to 100"),
        ('shape = ["B"]', 'shape = ["N"]', "the input x: there is no size 'N'"),
        ('arguments = ["x"]', 'arguments = ["z"]', "the call of double: there is no input or earlier result 'z'"),
        ('outputs = ["y"]', 'outputs = ["Y"]', "the item code.values: there is no result 'Y'"),
        ('outputs = ["y"]', "", "the item code.values: write `outputs`"),
        ('outputs = ["y"]', 'outputs = ["y"]\ncases = ["large"]', "the item code.values: there is no case 'large'"),
        ('says = "a small batch"', 'says = "a small batch"\nspecial = true', "every case is special"),
        ("format_version = 1", "format_version = 2", "format_version: write 1"),
        ('file = "mine.py"', 'file = "../mine.py"', "file: '../mine.py' is not allowed here: write a text"),
        ('file = "mine.py"', 'file = "mine.py"\nfiles = 1', "files: there is no such key"),
        ('title = "By hand"', "title = ", "is not TOML"),
    ],
)
def test_an_unusable_file_is_refused(find: str, replace: str, said: str, tmp_path: Path) -> None:
    exercises = write(tmp_path, TOML.replace(find, replace))
    with pytest.raises(UserError) as refusal:
        load_exercise("mine", exercises)
    assert said in str(refusal.value)
    assert str(exercises / "mine" / "judge.toml") in str(refusal.value)


def test_an_unknown_name_gets_the_close_match() -> None:
    with pytest.raises(UserError, match=r"There is no exercise 'backprop_mpl': did you mean backprop_mlp\?"):
        load_exercise("backprop_mpl")
