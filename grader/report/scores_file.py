"""Write `scores.json`, and read it back."""

from pathlib import Path

from pydantic import ValidationError

from grader.score.verdict import Scores
from harness.errors import UserError

SCORES = "scores.json"


def scores_bytes(scores: Scores) -> bytes:
    """Return the content of `scores.json`: strict JSON, one key a line, in UTF-8."""
    return scores.model_dump_json(indent=1).encode() + b"\n"


def read_scores(out: Path) -> Scores:
    """Return the scores in a folder of reports. Raises `UserError` if it holds none that can be read."""
    path = out / SCORES
    try:
        return Scores.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"There is no {path}: name the folder that grader score wrote.") from None
    except ValidationError:
        raise UserError(f"{path} does not hold scores of this version: score the class again.") from None
