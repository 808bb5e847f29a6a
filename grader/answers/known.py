"""Known answers of an exercise, right and wrong, with what each must lose: the test set of its judge."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from grader.solutions import SOLUTIONS, StrictModel, read_toml
from harness.file_exercise import FileExercise
from harness.recipe import Edit, apply_edits

ANSWERS = "answers.toml"


class KnownAnswer(StrictModel):
    """An answer, as edits of the reference solution or as a text of its own, and its verdict.

    loses: the checks that do not earn all their points; waits: those that could not be judged. All others earn
    everything. tells: a text that a student must be told.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    says: Annotated[str, Field(min_length=1)]
    loses: Annotated[tuple[str, ...], Field(strict=False)] = ()
    waits: Annotated[tuple[str, ...], Field(strict=False)] = ()
    tells: str = ""
    edits: Annotated[tuple[Edit, ...], Field(alias="edit", strict=False)] = ()
    text: str = ""

    @model_validator(mode="after")
    def _is_an_answer(self) -> "KnownAnswer":
        if self.edits and self.text:
            raise ValueError(
                "an answer has edits of the reference solution or a text of its own, and not both"
            )
        return self

    def source(self, reference: str) -> str:
        """Return the text of the answer. Raises `ValueError` where a `find` does not occur exactly once."""
        return self.text or apply_edits(reference, self.edits, where=f"answer {self.id}")


class _Answers(StrictModel):
    format_version: Annotated[int, Field(ge=1, le=1)]
    answers: Annotated[tuple[KnownAnswer, ...], Field(alias="answer", min_length=1, strict=False)]


def load_answers(exercise_id: str, solutions: Path = SOLUTIONS) -> tuple[KnownAnswer, ...]:
    """Return the known answers of an exercise. Raises `UserError` if the file is missing or wrong."""
    return read_toml(solutions / exercise_id / ANSWERS, _Answers).answers


def reference(exercise: FileExercise, solutions: Path = SOLUTIONS) -> str:
    """Return the reference solution."""
    return (solutions / exercise.id / exercise.file).read_text(encoding="utf-8")
