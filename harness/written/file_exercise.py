"""An exercise whose answer is one file: no run to repair, but code or a text to write. Data in `exercise.toml`.

`exercises/<id>/` holds `exercise.toml`, `PROMPT.md` and, under the name that `file` gives, what the student begins
with. `KINDS` lists what such a file may be; a broken run, the other thing that an exercise may be, is a
`harness.recipe.Recipe`.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.recipe import EXERCISES, FILE_EXERCISE, Recipe, load_recipe, recipe_ids, suggestion


class FileExercise(BaseModel):
    """What every kind has; `id` is the name of the folder, `file` that of the file to write."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    format_version: Literal[1]
    kind: str
    title: Annotated[str, Field(min_length=1)]
    file: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z]+$")]


class Derivation(FileExercise):
    """A forward and a backward pass to write in NumPy; `problem` names its contract in `harness.written.derivation`."""

    kind: Literal["derivation"]
    problem: Literal["mlp", "layernorm"]


class DecisionTree(FileExercise):
    """A tree of checks to write in YAML (`harness.written.decision_tree`)."""

    kind: Literal["decision_tree"]


# A kind is its record here, its checks in `harness.written.file_checks`, and a function of the grader that examines it.
KINDS: Mapping[str, type[FileExercise]] = {"derivation": Derivation, "decision_tree": DecisionTree}


def file_exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the names of all exercises whose answer is a file, sorted."""
    return sorted(path.parent.name for path in exercises.glob(f"*/{FILE_EXERCISE}"))


def exercise_ids(exercises: Path = EXERCISES) -> list[str]:
    """Return the names of all exercises, of every kind: the broken runs first."""
    return [*recipe_ids(exercises), *file_exercise_ids(exercises)]


def load_exercise(exercise_id: str, exercises: Path = EXERCISES) -> Recipe | FileExercise:
    """Return an exercise of any kind. Raises `UserError` for an unknown name, an unknown key or a wrong value."""
    if exercise_id not in file_exercise_ids(exercises):
        return load_recipe(exercise_id, exercises)
    path = exercises / exercise_id / FILE_EXERCISE
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not TOML: {error}.") from None
    kind = KINDS.get(str(table.get("kind")))
    if kind is None:
        raise UserError(f"{path} is of no kind that is known: {suggestion(str(table.get('kind')), [*KINDS])}")
    try:
        return kind.model_validate({**table, "id": exercise_id})
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{path} is not an exercise: {problems}.") from None


def find_file_exercise(exercise_id: str, exercises: Path = EXERCISES) -> FileExercise | None:
    """Return the exercise of this name where its answer is a file, and None for every other name."""
    if exercise_id not in file_exercise_ids(exercises):
        return None
    found = load_exercise(exercise_id, exercises)
    assert isinstance(found, FileExercise)
    return found


def stub(exercise: FileExercise, exercises: Path = EXERCISES) -> str:
    """Return the text that a student begins with."""
    return (exercises / exercise.id / exercise.file).read_text(encoding="utf-8")
