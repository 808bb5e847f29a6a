"""When a conclusion counts, and what minutes cost: the table `[formula]` of the exercise's `rubric.toml`."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from grader.score.solutions import SOLUTIONS, StrictModel
from grader.toml_file import read_table
from grader.written.answers.points import FORMULA, RUBRIC
from harness.errors import UserError


class Formula(StrictModel):
    """The figures of the formula; `docs/grading.md` says why they are what they are.

    evidence: a conclusion counts where more than this share of what comes to an end is what is concluded there.
    slowest: at so many times the minutes of the reference tree, what is rightly concluded earns nothing for its cost.
    """

    evidence: Annotated[float, Field(ge=0.5, lt=1)]
    slowest: Annotated[float, Field(gt=1)]

    def pace(self, minutes: float, reference: float) -> float:
        """Return the share of the points for the cost, 1 up to the reference's minutes, falling evenly to 0."""
        return min(1.0, max(0.0, (self.slowest - minutes / reference) / (self.slowest - 1)))


def load_formula(exercise_id: str, solutions: Path = SOLUTIONS) -> Formula:
    """Return the formula of an exercise. Raises `UserError` for a file that cannot be used."""
    path = solutions / exercise_id / RUBRIC
    table = read_table(path).get(FORMULA)
    if table is None:
        raise UserError(f"{path}: [{FORMULA}] is missing: it holds {', '.join(Formula.model_fields)}.")
    try:
        return Formula.model_validate(table)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UserError(f"{path}: [{FORMULA}] cannot be used: {problems}.") from None
