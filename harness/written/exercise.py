"""Exercises in which students write one file, with code or text, instead of fixing a training run.

`exercises/<id>/` contains `exercise.toml`, `PROMPT.md` and the file that a student starts from. The exercises with a
broken run are in `harness.recipes.recipe.Recipe`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness.errors import UserError, suggestion
from harness.formats.toml_file import StrictModel, read_record, read_table
from harness.recipes.catalogue import load_recipe
from harness.recipes.recipe import EXERCISES, FILE_EXERCISE, Recipe, recipe_ids


class FileExercise(StrictModel):
    """The fields that both kinds of exercise have. id: the name of the folder. file: the name of the file to write."""

    id: str
    format_version: Literal[1]
    kind: str
    title: Annotated[str, Field(min_length=1)]
    file: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z]+$")]


class Derivation(FileExercise):
    """An exercise to write forward and backward pass in NumPy. `problem` is a key of `derivation.PROBLEMS`."""

    kind: Literal["derivation"]
    problem: Literal["mlp", "layernorm"]


class DecisionTree(FileExercise):
    """An exercise to write a decision tree of checks in YAML (`harness.written.decision_tree`)."""

    kind: Literal["decision_tree"]


KINDS: Mapping[str, type[FileExercise]] = {"derivation": Derivation, "decision_tree": DecisionTree}


def file_exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the sorted names of all exercises in which students write a file."""
    return sorted(path.parent.name for path in exercises.glob(f"*/{FILE_EXERCISE}"))


def exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the names of all exercises, beginning with the broken runs."""
    return [*recipe_ids(exercises), *file_exercise_ids(exercises)]


def load_exercise(exercise_id: str, exercises: Path = EXERCISES) -> Recipe | FileExercise:
    """Return the exercise with this name. Raises `UserError` for an unknown name and for an invalid file."""
    if exercise_id not in file_exercise_ids(exercises):
        return load_recipe(exercise_id, exercises)
    path = exercises / exercise_id / FILE_EXERCISE
    name = str(read_table(path).get("kind"))
    if name not in KINDS:
        raise UserError(f"{path} has an unknown kind: {suggestion(name, [*KINDS])}")
    return read_record(path, KINDS[name], id=exercise_id)


def find_file_exercise(exercise_id: str, exercises: Path = EXERCISES) -> FileExercise | None:
    """Return the exercise with this name if students write a file in it, and None for every other name."""
    if exercise_id not in file_exercise_ids(exercises):
        return None
    found = load_exercise(exercise_id, exercises)
    assert isinstance(found, FileExercise)
    return found


def stub(exercise: FileExercise, exercises: Path = EXERCISES) -> str:
    """Return the original text of the file that the student edits."""
    return (exercises / exercise.id / exercise.file).read_text(encoding="utf-8")
