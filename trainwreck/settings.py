"""Read the user's settings: the table `[tool.trainwreck]` of the nearest `pyproject.toml`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwreck.finding import DEFAULT_STEPS
from trainwreck.usage import UsageError, did_you_mean

_TABLE = "[tool.trainwreck]"


@dataclass(frozen=True)
class Settings:
    """The settings of a project. The fields are the options of the command; `file` is where they come from."""

    file: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict: bool = False
    steps: int = DEFAULT_STEPS
    baseline: Path | None = None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_Rule = tuple[str, Callable[[Any], bool]]
_NAMES: _Rule = ("a list of strings", _is_names)
# By key: the value in words, and whether a value is right.
_KEYS: dict[str, _Rule] = {
    "select": _NAMES,
    "ignore": _NAMES,
    "strict": ("true or false", lambda value: isinstance(value, bool)),
    "steps": ("a whole number from 1", lambda value: type(value) is int and value > 0),
    "baseline": ("a string, the path of a file", lambda value: isinstance(value, str) and bool(value)),
}


def read_settings(script: Path) -> Settings:
    """Return the settings of the nearest `pyproject.toml` at or above the folder of a script.

    A relative `baseline` belongs to the folder of the file. Python 3.10 cannot read TOML: there the table is left out,
    and a line on standard error says so.

    Raises `UsageError` if the file cannot be read, and for an unknown key or a value of a wrong type.
    """
    folders = script.resolve().parents
    file = next((folder / "pyproject.toml" for folder in folders if (folder / "pyproject.toml").is_file()), None)
    if file is None:
        return Settings()
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not a text in UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    table = _parse(file, text)
    for key, value in table.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise UsageError(f"{file}: {_TABLE} has no key {key}{hint}\nThe keys are {', '.join(_KEYS)}.")
        words, is_right = _KEYS[key]
        if not is_right(value):
            raise UsageError(f"{file}: {key} in {_TABLE} must be {words}, not {value!r}.")
    for key in table.keys() & {"select", "ignore"}:
        table[key] = tuple(table[key])
    if "baseline" in table:
        table["baseline"] = file.parent / table["baseline"]
    return Settings(file, **table)


def _parse(file: Path, text: str) -> dict[str, Any]:
    """Return a copy of the table, which is empty if the file does not have it."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        if _TABLE in text:
            print(f"{file}: {_TABLE} is not read, because Python 3.10 has no tomllib.", file=sys.stderr)
        return {}
    try:
        table = tomllib.loads(text).get("tool", {}).get("trainwreck", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from None
    except AttributeError:  # `tool` is not a table
        return {}
    if not isinstance(table, dict):
        raise UsageError(f"{file}: tool.trainwreck must be a table, {_TABLE}.")
    return dict(table)
