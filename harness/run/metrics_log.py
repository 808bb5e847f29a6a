"""Write and read `metrics.log`, which has a strict JSON object in each line. Equal runs give equal bytes."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TextIO

from jiter import from_json

from harness.errors import UserError, printable
from harness.run.signals import NESTED_SIGNALS

Record = dict[str, Any]

# The keys of a record whose values are tables with a number for each parameter or layer. All other values are numbers.
_TABLES = frozenset(NESTED_SIGNALS)
_LAST_STEP = 2**53  # above this number, floats cannot represent every whole number
_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


_encode = json.JSONEncoder(allow_nan=False).encode
# Parses UTF-8. Raises `ValueError` if the text is not strict JSON, or if a key is repeated, because two readers could
# then see different values.
strict_json = partial(from_json, allow_inf_nan=False, catch_duplicate_keys=True)


def to_strict(value: Any) -> Any:
    """Return the value with non-finite numbers replaced by their names, because strict JSON has only finite numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: to_strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_strict(item) for item in value]
    return value


def from_strict(value: Any) -> Any:
    """Return the value with the names NaN, Infinity and -Infinity replaced by floats.

    This is the inverse of `to_strict`.
    """
    if isinstance(value, str):
        return _NAMES.get(value, value)
    if isinstance(value, dict):
        return {key: from_strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_strict(item) for item in value]
    return value


def read_object(path: Path) -> Record:
    """Return the JSON object in a file of a run. The names of non-finite numbers become floats.

    Raises `UserError` if the file is missing or does not contain a JSON object. The message has no remedy; callers add
    it.
    """
    try:
        value = from_strict(json.loads(path.read_bytes().decode("utf-8")))
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} does not contain a JSON object")
    return value


def format_record(record: Record) -> str:
    """Return the record as a line of the log, with its newline."""
    try:
        # Encode without `to_strict` first, because almost every record is finite, and `to_strict` takes longer than
        # encoding.
        return _encode(record) + "\n"
    except ValueError:
        return _encode(to_strict(record)) + "\n"


def log_metrics(file: TextIO, record: Record) -> None:
    """Write a record as a line of strict JSON, at once, so that another process can read it."""
    file.write(format_record(record))
    file.flush()


def read_metrics_log(path: Path) -> Sequence[Record]:
    """Return the records of batches and epochs in a `metrics.log`, in order. They are cached, so do not change them.

    Raises `UserError` that names the file and, if possible, the line.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no log at {path}: make the run first.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: make the run again to write a complete log.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    return parse_log(text, str(path))


def log_lines(text: str) -> list[str]:
    """Return the lines of a log.

    Only a line feed ends a line, because a JSON string may contain other line separators such as U+2028.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def parse_log(text: str, source: str) -> Sequence[Record]:
    """Return all records of a log. They are cached, so do not change them.

    The values are numbers, None, and tables of numbers or None. Raises `UserError` that names `source` and the first
    invalid line.
    """
    try:
        return _records(text)
    except ValueError as error:
        raise UserError(f"{source}, {error}: make the run again to write a valid log.") from None


# The grader reads each log several times, but reads logs of other submissions in between. The records of a log take 0.3
# MB.
@lru_cache(maxsize=32)
def _records(text: str) -> Sequence[Record]:
    records = []
    for number, line in enumerate(log_lines(text), start=1):
        try:
            records.append(_parse_record(line))
        except ValueError as error:
            raise ValueError(f"line {number} is not a record of a run ({error})") from None
    return records


def _parse_record(line: str) -> Record:
    """Return the record in a line.

    Raises `ValueError` if it is not strict JSON, or contains a value that no run writes.
    """
    if not line.strip():
        raise ValueError("the line is blank")
    found = strict_json(line.encode())
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    for key, value in found.items():
        if key in ("step", "epoch"):
            if not (type(value) is int and 0 <= value <= _LAST_STEP):
                raise ValueError(f"{key} is not a whole number of at least 0")
        elif key not in _TABLES:
            found[key] = _number(key, value)
        elif isinstance(value, dict):
            _read_table(value)
        else:
            raise ValueError(f"{key!r} is not a table of numbers")
    return found


def _read_table(table: Record) -> None:
    """In a table and its nested tables, replace the names of non-finite numbers.

    Raises `ValueError` for other strings.
    """
    for key, value in table.items():
        if isinstance(value, dict):
            _read_table(value)
        elif type(value) is not float or not math.isfinite(
            value
        ):  # calling `_number` for every value would take 10 % longer
            table[key] = _number(key, value)


def _number(key: str, value: Any) -> float | int | None:
    """Return the value if it is a number or None. Names of non-finite numbers become floats.

    Raises `ValueError` otherwise.
    """
    if type(value) is float:
        if math.isinf(value):
            raise ValueError("it contains a number that is too large")
        return value
    if isinstance(value, str) and value in _NAMES:
        return _NAMES[value]
    if value is None or (type(value) is int and abs(value) <= _LAST_STEP):
        return value
    raise ValueError(f"{key[:40]!r} is not a number")


def batch_records(records: Iterable[Record]) -> list[Record]:
    """Return the records of batches, which have a key `step`."""
    return [record for record in records if "step" in record]


def epoch_records(records: Iterable[Record]) -> list[Record]:
    """Return the records of epochs, which have no key `step`."""
    return [record for record in records if "step" not in record]


_DEPTH = 3  # the most levels of nested tables; a run writes two


def log_difference(old: bytes, new: bytes) -> str:
    """Return where two different logs first differ, as the end of a sentence that starts with the file's name."""
    lines, new_lines = (log_lines(data.decode("utf-8", "backslashreplace")) for data in (old, new))
    for number, (line, new_line) in enumerate(zip(lines, new_lines, strict=False), start=1):
        if line != new_line:
            return f", line {number}{_record_difference(line, new_line)}"
    if len(lines) != len(new_lines):
        return f" has {len(lines)} lines, but {len(new_lines)} when the run is made again"
    return " ends differently when the run is made again"


def _record_difference(line: str, new_line: str) -> str:
    if not line.strip():
        return " is blank, and no run writes a blank line"
    try:
        (record,), (new_record,) = parse_log(line, ""), parse_log(new_line, "")
    except UserError:
        return " is not the record that the run writes when it is made again"
    kind = "step" if "step" in new_record else "epoch"
    where = f" ({kind} {new_record.get(kind)})"
    first, second = dict(numbers_of(record)), dict(numbers_of(new_record))
    for name in {**first, **second}:
        values = ["absent" if found.get(name) is None else repr(found[name]) for found in (first, second)]
        if values[0] != values[1]:
            return f"{where}: {printable(name)} is {values[0]}, but {values[1]} when the run is made again"
    return f"{where} is written differently"


def numbers_of(record: Record, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float | None]]:
    """Yield (name, number) for every number in a record.

    The name of a number in a table is its keys, joined by dots.
    """
    for key, value in record.items():
        if not isinstance(value, dict):
            yield f"{prefix}{key}", value
        elif depth < _DEPTH:
            yield from numbers_of(value, f"{prefix}{key}.", depth + 1)
