"""The right outputs for the public inputs of a written exercise: `exercises/<id>/expected.txt`.

`make check` compares an answer with them, because students do not have the solution. The file also identifies the
outputs of usual mistakes. It is encoded, because a readable text would reveal their remedies.
"""

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from harness.errors import UserError
from harness.formats.toml_file import StrictModel
from harness.recipes.recipe import EXERCISES, FILE_EXERCISE
from harness.written.comparison import Mistake, Outputs, Reference
from harness.written.exercise import FunctionExercise

EXPECTED = "expected.txt"
_Nested = dict[str, dict[str, Any]]


class _ExpectedMistake(StrictModel):
    id: str
    remedy: str
    outputs: _Nested


class _Expected(StrictModel):
    judge_sha256: str
    right: _Nested
    mistakes: list[_ExpectedMistake]


def judge_hash(exercise_id: str, exercises: Path = EXERCISES) -> str:
    """Return the SHA-256 of the judge file, which determines the public inputs."""
    return hashlib.sha256((exercises / exercise_id / FILE_EXERCISE).read_bytes()).hexdigest()


def encode_reference(reference: Reference, judge_sha256: str) -> bytes:
    """Return the content of `expected.txt`. The fingerprints of mistakes are rounded to nine digits."""
    mistakes = [
        {"id": one.id, "remedy": one.remedy, "outputs": _nested_lists(one.outputs, digits=9)}
        for one in reference.mistakes
    ]
    table = {"judge_sha256": judge_sha256, "right": _nested_lists(reference.right), "mistakes": mistakes}
    return base64.b64encode(zlib.compress(json.dumps(table, separators=(",", ":")).encode(), 9)) + b"\n"


def _nested_lists(outputs: Outputs, digits: int = 17) -> _Nested:
    return {
        case: {name: _round_numbers(array.tolist(), digits) for name, array in arrays.items()}
        for case, arrays in outputs.items()
    }


def _round_numbers(value: Any, digits: int) -> Any:
    return [_round_numbers(one, digits) for one in value] if isinstance(value, list) else float(f"{value:.{digits}g}")


def read_reference(exercise: FunctionExercise, exercises: Path = EXERCISES) -> Reference:
    """Return the right outputs for the public inputs, and the usual mistakes.

    Raises `UserError` if the file is missing or invalid, or belongs to another judge file.
    """
    path = exercises / exercise.id / EXPECTED
    remedy = f"restore the original file, or run grader selfcheck --only {exercise.id} --write"
    try:
        read = _Expected.model_validate_json(zlib.decompress(base64.b64decode(path.read_bytes())))
    except FileNotFoundError:
        raise UserError(f"There is no {path}: {remedy}.") from None
    except (ValidationError, ValueError, zlib.error):
        raise UserError(f"{path} was not written by this version of trainwreck: {remedy}.") from None
    if read.judge_sha256 != judge_hash(exercise.id, exercises):
        raise UserError(f"{path} belongs to another {FILE_EXERCISE}: {remedy}.")
    return Reference(
        _arrays(read.right), tuple(Mistake(one.id, one.remedy, _arrays(one.outputs)) for one in read.mistakes)
    )


def _arrays(nested: _Nested) -> Outputs:
    return {
        case: {name: np.array(value, dtype=np.float64) for name, value in outputs.items()}
        for case, outputs in nested.items()
    }
