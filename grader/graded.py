"""A row of the class with what its page shows, and the rows of what could not be scored."""

from grader.exhibits import Exhibits
from grader.score import Model, SubmissionScore


class Graded(Model):
    """One row of the class, and what its page shows."""

    row: SubmissionScore
    exhibits: Exhibits


def nothing_to_show(name: str) -> Exhibits:
    """Return the exhibits of a submission that was not replayed."""
    return Exhibits(submission=name, broken_source=None, fixed_source=None, report=None)


def row_without_checks(
    name: str, student: str | None, recipe: str | None, status: str, reason: str
) -> SubmissionScore:
    """Return the row of a submission that was rejected, or that the grader failed on."""
    guessed_student, _, guessed_recipe = name.partition("_")
    return SubmissionScore.model_validate(
        {
            "submission": name,
            "student": student or guessed_student or name,
            "recipe": recipe or guessed_recipe,
            "status": status,
            "reason": reason,
            "total": 0.0 if status == "rejected" else None,
            "criteria": {},
            "provenance": {},
        }
    )
