from pathlib import Path

import pytest

from harness.errors import UserError
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import EXERCISES, Recipe, recipe_ids
from harness.written.exercise import (
    Derivation,
    exercise_ids,
    file_exercise_ids,
    find_file_exercise,
    load_exercise,
    stub,
)

TOML = """\
format_version = 1
kind = "derivation"
title = "By hand"
problem = "mlp"
file = "mine.py"
"""


def write(folder: Path, text: str = TOML) -> Path:
    (folder / "mine").mkdir()
    (folder / "mine" / "exercise.toml").write_text(text)
    (folder / "mine" / "mine.py").write_text("begin here\n")
    return folder


def test_an_exercise_is_what_its_file_says_and_has_no_run(tmp_path: Path) -> None:
    exercises = write(tmp_path)
    exercise = load_exercise("mine", exercises)
    assert isinstance(exercise, Derivation)
    assert (exercise.id, exercise.problem, exercise.file) == ("mine", "mlp", "mine.py")
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
        ('kind = "derivation"', 'kind = "derivations"', "has an unknown kind: did you mean derivation?"),
        ('kind = "derivation"\n', "", "has an unknown kind"),
        ('problem = "mlp"', 'problem = "cnn"', "problem: write 'mlp' or 'layernorm'"),
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
    assert str(exercises / "mine" / "exercise.toml") in str(refusal.value)


def test_an_unknown_name_gets_the_close_match() -> None:
    with pytest.raises(UserError, match=r"There is no exercise 'backprop_mpl': did you mean backprop_mlp\?"):
        load_exercise("backprop_mpl")
