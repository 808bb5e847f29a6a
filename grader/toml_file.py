"""Reads a TOML file that a person wrote: its table, or one sentence that says what is wrong with it."""

import tomllib
from pathlib import Path
from typing import Any

from harness.errors import UserError


def read_table(path: Path) -> dict[str, Any]:
    """Return what is in a TOML file. Raises `UserError` for what is none, `OSError` where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{path} is not TOML: brackets within brackets, too deep for any reader.") from None
    except ValueError as error:  # a number of 5,000 digits is one, too
        raise UserError(f"{path} is not TOML: {error}.") from None
