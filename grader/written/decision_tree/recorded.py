"""What the instruments found of experiments under seeds that are held back: `solutions/<id>/outcomes.json`.

`python -m benchmarks.tree_outcomes --write` makes it.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from grader.score.solutions import SOLUTIONS
from grader.score.verdict import Model
from harness.errors import UserError

OUTCOMES = "outcomes.json"


class Recorded(Model):
    """One experiment and what every check found of it.

    truth: what a tree should conclude, the id of a recipe or `healthy`. name: the recipe, or the sound experiment and
    its variant. key: the SHA-256 of all that decides about the outcomes.
    """

    truth: str
    name: str
    seed: int
    key: str
    outcomes: Mapping[str, str]


class Recording(Model):
    """The whole of one `outcomes.json`."""

    format_version: Literal[1] = 1
    made_by: str
    experiments: tuple[Recorded, ...]

    @property
    def truths(self) -> tuple[str, ...]:
        """All that there is to be concluded, in the order of the file."""
        return tuple(dict.fromkeys(one.truth for one in self.experiments))


@cache
def load_recording(exercise_id: str, solutions: Path = SOLUTIONS) -> Recording:
    """Return what was recorded for an exercise. Raises `UserError` for a file that is missing or cannot be used."""
    path = solutions / exercise_id / OUTCOMES
    remedy = "make it with python -m benchmarks.tree_outcomes --write"
    try:
        return Recording.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"There is no {path}: {remedy}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} cannot be used: {where}: {first['msg']}: {remedy}.") from None
