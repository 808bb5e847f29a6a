"""The solution of a written exercise, and its known answers, right and wrong (`solutions/<id>/answers.toml`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from harness.errors import UserError
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import SOLUTIONS, Edit, apply_edits
from harness.written.calls import CallResults, call_cases
from harness.written.comparison import Outputs, Reference, find_mistake, plan_of
from harness.written.exercise import FileExercise, FunctionExercise
from harness.written.inputs import Inputs

ANSWERS = "answers.toml"
_LIST = Field(strict=False)


class KnownAnswer(StrictModel):
    """An answer with a known judgement: edits of the solution, or a whole `text`.

    loses: the items, or whole criteria, that do not earn all their points. waits: those that the instructor decides.
    remedy: the advice for this usual mistake; the judge gives it to every answer with the same wrong outputs.
    tells: a text that the reasons must contain.
    """

    id: str
    says: str
    loses: Annotated[tuple[str, ...], _LIST] = ()
    waits: Annotated[tuple[str, ...], _LIST] = ()
    remedy: str = ""
    tells: str = ""
    text: str = ""
    edit: Annotated[tuple[Edit, ...], _LIST] = ()

    def source(self, solution: str) -> str:
        """Return the text of the answer. Raises `UserError` if an edit does not fit the solution."""
        return self.text or apply_edits(solution, list(self.edit), where=self.id)


class _KnownAnswers(StrictModel):
    format_version: Literal[1]
    answer: Annotated[tuple[KnownAnswer, ...], _LIST] = ()


def solution_of(exercise: FileExercise, solutions: Path = SOLUTIONS) -> str:
    """Return the reference solution of an exercise. Raises `UserError` if there is none."""
    path = solutions / exercise.id / exercise.file
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no {path}: write the solution of {exercise.id} into this file.") from None


def known_answers(exercise_id: str, solutions: Path = SOLUTIONS) -> tuple[KnownAnswer, ...]:
    """Return the known answers of an exercise. Raises `UserError` for an invalid file."""
    path = solutions / exercise_id / ANSWERS
    return read_record(path, _KnownAnswers).answer if path.is_file() else ()


def reference_of(
    exercise: FunctionExercise, cases: Mapping[str, Inputs], solutions: Path = SOLUTIONS, *, mistakes: bool = True
) -> Reference:
    """Return the right outputs for these inputs, and the outputs of the usual mistakes, from the solution.

    Raises `UserError` if the solution fails, because then nothing can be judged.
    """
    solution = solution_of(exercise, solutions)
    right = right_outputs(exercise, solution, cases)
    plan = plan_of(exercise, outputs=exercise.compared)
    usual = [one for one in known_answers(exercise.id, solutions) if one.remedy and mistakes]
    found = [find_mistake(one.id, one.remedy, call_cases(plan, one.source(solution), cases), right) for one in usual]
    return Reference(right, tuple(found))


def right_outputs(exercise: FunctionExercise, solution: str, cases: Mapping[str, Inputs]) -> Outputs:
    """Return {case: {output: right value}}. Raises `UserError` if the solution does not return an output."""
    results: CallResults = call_cases(plan_of(exercise), solution, cases)
    if results.problem:
        raise UserError(f"The solution of {exercise.id} cannot be called: {results.problem}.")
    for case, called in results.cases.items():
        for message in called.problems.values():
            raise UserError(f"The solution of {exercise.id} fails in the case {case}: {message}.")
    return {case: called.outputs for case, called in results.cases.items()}
