"""Known answers of an exercise, right and wrong, with what each must lose: the test set of its judge."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from grader.score.solutions import SOLUTIONS, StrictModel, read_toml
from grader.score.verdict import Outcome
from grader.written.answers.examination import Examination
from harness.recipe import Edit, apply_edits
from harness.written.exercise import FileExercise

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


def complaint(answer: KnownAnswer, examination: Examination) -> str:
    """Return in what an examination is not what was declared of an answer, or "" where it is."""
    if examination.fault:
        return examination.fault
    wanted: dict[Outcome, Iterable[str]] = {"failed": answer.loses, "could not judge": answer.waits}
    found = []
    for outcome, declared in wanted.items():
        expected = {name for item in declared for name in _addresses(item, examination)}
        given = {
            f"{criterion}.{check.id}"
            for criterion, checks in examination.checks.items()
            for check in checks
            if check.outcome == outcome
        }
        if more := sorted(given - expected):
            found.append(f"{outcome}, and not declared: {', '.join(more)}")
        if less := sorted(expected - given):
            found.append(f"not {outcome}: {', '.join(less)}")
    reasons = " ".join(check.reason for checks in examination.checks.values() for check in checks)
    if answer.tells not in reasons:
        found.append(f"nobody is told {answer.tells!r}")
    return "; ".join(found)


def _addresses(item: str, examination: Examination) -> list[str]:
    """Return the checks that are meant: one by its address, or all of a criterion."""
    return [item] if "." in item else [f"{item}.{check.id}" for check in examination.checks[item]]
