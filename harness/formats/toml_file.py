"""Read TOML files that people write, as tables or as pydantic models. A single message reports all errors in a file."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import UserError


class StrictModel(BaseModel):
    """A frozen pydantic model that refuses unknown keys and does not convert values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_EXTRA = "extra_forbidden"
# Maps each pydantic error type to the advice that the message gives.
_WRITE = {
    "missing": "this key is missing: write it",
    "datetime_type": "write a date and a time as 2026-11-16T23:59:00, without quotes",
    "bool_type": "write true or false, in lower case and without quotes",
    "tuple_type": 'write a list, as in ["a", "b"]',
    "list_type": 'write a list, as in ["a", "b"]',
    "dict_type": 'write pairs in braces, as in { ada = ["a1"] }',
    "model_type": "write a table: a heading in brackets, with its keys below it",
    "string_type": "write text in straight quotes",
    "int_type": "write a whole number, without quotes",
    "float_type": "write a number, without quotes",
}
Model = TypeVar("Model", bound=BaseModel)


def read_table(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises `UserError` if it is not TOML, and `OSError` if the file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: save it as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{path} is not TOML: its brackets are nested too deeply.") from None
    except ValueError as error:  # tomllib also raises it for a number of 5,000 digits
        raise UserError(
            f"{path} is not TOML: {error}. Write text in straight quotes, a date as 2026-11-16T23:59:00 without quotes,"
            " and true and false in lower case."
        ) from None


def read_record(path: Path, model: type[Model], **more: Any) -> Model:
    """Return the content of a TOML file as a model of the given class, with the fields in `more` added.

    Raises `UserError` with a message that names the file and every wrong key. If a table has an id, the message names
    it by its id.
    """
    try:
        table = read_table(path)
    except FileNotFoundError:
        raise UserError(f"There is no {path}: write this file, or put it back.") from None
    if both := sorted(more.keys() & table.keys()):
        raise UserError(f"{path} cannot be used: remove the key {both[0]}, which does not belong in this file.")
    try:
        return model.model_validate({**table, **more})
    except ValidationError as error:
        errors = error.errors()
        meant = {(*item["loc"][:-1], _close_key(item, model)) for item in errors if item["type"] == _EXTRA}
        found = (
            (_place(table, item["loc"]), _problem(item, model))
            for item in errors
            if not (item["type"] == "missing" and item["loc"] in meant)  # a misspelt key is reported once, as unknown
        )
        problems = [": ".join(filter(None, parts)).rstrip(".") for parts in found]
        raise UserError(f"{path} cannot be used: {'; '.join(problems)}.") from None


def _place(table: Any, loc: Sequence[int | str]) -> str:
    """Return words that say where a value is in a file, or "" for the whole file.

    A table is named by its id or its number.
    """
    words = []
    for part in loc:
        try:
            table = table[part]
        except (LookupError, TypeError):
            table = None
        named = isinstance(part, int) and isinstance(table, Mapping) and isinstance(table.get("id"), str)
        words.append(table["id"] if named else f"#{part + 1}" if isinstance(part, int) else part)
    return ".".join(words).replace(".#", " #")


def _problem(item: Any, model: type[BaseModel]) -> str:
    if item["type"] == _EXTRA:
        return f"there is no such key: {_instead(item, model)}"
    context = item.get("ctx", {})
    if item["type"] == "string_pattern_mismatch":
        return f"{item['input']!r} is not allowed here: write a text that matches {context['pattern']}"
    if item["type"] == "literal_error":
        return f"write {context['expected']}"
    if item["type"] == "too_short":
        return f"write at least {context['min_length']} items"
    if item["type"] == "too_long":
        return f"write at most {context['max_length']} items"
    said: str = item["msg"].removeprefix("Value error, ")
    return _WRITE.get(item["type"], said)


def _instead(item: Any, model: type[BaseModel]) -> str:
    """Return the advice for an unknown key."""
    *path, key = item["loc"]
    if close := _close_key(item, model):
        return f"did you mean {close}?"
    below = [name for name in _keys(model, path) if key in _keys(model, [*path, name])]
    if below:
        return f"move this key below [[{'.'.join([*map(str, path), below[0]])}]]"
    return f"choose from {', '.join(_keys(model, path))}"


def _close_key(item: Any, model: type[BaseModel]) -> str:
    """Return the known key whose spelling is closest to the unknown key, or "" if no known key is similar."""
    *path, key = item["loc"]
    return next(iter(difflib.get_close_matches(str(key), _keys(model, path), n=1)), "")


def _keys(model: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """Return the keys that a pydantic model allows in the table with this dotted path."""
    for name in path:
        fields = {field.alias or own: field.annotation for own, field in model.model_fields.items()}
        model = next(_models(fields[str(name)]), model) if name in fields else model
    return [field.alias or own for own, field in model.model_fields.items() if field.exclude is not True]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the model classes in a type annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
