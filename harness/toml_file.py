"""TOML files that people write: a table or a record, or one sentence that says what is wrong with the file."""

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UserError


class StrictModel(BaseModel):
    """A frozen record: no unknown keys, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=BaseModel)


def read_table(path: Path) -> dict[str, Any]:
    """Return what is in a TOML file. Raises `UserError` if it is not TOML, `OSError` if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{path} is not TOML: brackets within brackets, too deep for any reader.") from None
    except ValueError as error:  # a number of 5,000 digits is one, too
        raise UserError(f"{path} is not TOML: {error}.") from None


def read_record(path: Path, model: type[Model], **more: Any) -> Model:
    """Return a TOML file as a record, with the fields in `more` added.

    Raises `UserError` that names the file and every key that is wrong.
    """
    try:
        table = read_table(path)
    except FileNotFoundError:
        raise UserError(f"There is no {path}: write it, or put it back.") from None
    if both := sorted(more.keys() & table.keys()):
        raise UserError(f"{path} cannot be used: {both[0]}: it does not belong here: remove it.")
    try:
        return model.model_validate({**table, **more})
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}" for item in error.errors()
        )
        raise UserError(f"{path} cannot be used: {problems}.") from None
