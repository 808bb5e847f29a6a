"""`metrics.log`: one strict JSON object a line, the same bytes for the same run."""

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from harness.errors import UserError
from harness.run.signals import NESTED_SIGNALS

if TYPE_CHECKING:  # it imports torch, which readers of a log do not need
    from harness.run.recorder import BatchMeasurements

Record = dict[str, Any]

# Tables of numbers by parameter or by layer; every other value of a record is one number.
_TABLES = frozenset(NESTED_SIGNALS)
_LAST_STEP = 2**53  # above it, not every whole number is a float
_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

# Between two training steps, which have just filled the caches, making and formatting a record takes five times
# as long as after another record.
BATCHES_AT_ONCE = 32

_encode = json.JSONEncoder(allow_nan=False).encode


def to_strict(value: Any) -> Any:
    """Return the value with every non-finite number replaced by its name, as strict JSON needs it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: to_strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_strict(item) for item in value]
    return value


def from_strict(value: Any) -> Any:
    """Undo `to_strict`."""
    if isinstance(value, str):
        return _NAMES.get(value, value)
    if isinstance(value, dict):
        return {key: from_strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_strict(item) for item in value]
    return value


def read_object(path: Path) -> Record:
    """Return the JSON object in a file of a run; non-finite numbers become floats.

    Raises `UserError`, a sentence to which the caller adds the remedy, for anything else.
    """
    try:
        value = from_strict(json.loads(path.read_bytes().decode("utf-8")))
    except FileNotFoundError:
        raise UserError(f"{path} is missing") from None
    except (ValueError, RecursionError):
        raise UserError(f"{path} is not JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object")
    return value


def format_record(record: Record) -> str:
    """Return the record as one line of the log, newline included."""
    try:
        # Almost every record is finite, and `to_strict` takes longer than the encoding.
        return _encode(record) + "\n"
    except ValueError:
        return _encode(to_strict(record)) + "\n"


class LogWriter:
    """Writes `metrics.log` during a run, `BATCHES_AT_ONCE` at a time; `note` is called with each batch's record.

    Use it as a context manager: leaving it, even through an error, writes the batches that are still held back.
    """

    def __init__(self, file: TextIO, note: Callable[[Record], object]) -> None:
        self._file = file
        self._note = note
        self._held_back: list[tuple[Record, BatchMeasurements]] = []

    def __enter__(self) -> "LogWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def batch(self, position: Record, measured: "BatchMeasurements") -> None:
        """Add a batch: its `step` and `epoch`, and what was measured."""
        self._held_back.append((position, measured))
        if len(self._held_back) >= BATCHES_AT_ONCE:
            self.flush()

    def epoch(self, record: Record) -> None:
        """Write the batches so far, then the record of an epoch."""
        self.flush()
        self._file.write(format_record(record))
        self._file.flush()

    def flush(self) -> None:
        """Write the batches so far."""
        held_back, self._held_back = self._held_back, []
        records = [{**position, **measured.record()} for position, measured in held_back]
        self._file.writelines(map(format_record, records))
        self._file.flush()
        for record in records:
            self._note(record)


def read_metrics_log(path: Path) -> list[Record]:
    """Return the records of a `metrics.log`, batches and epochs in the order they happened.

    Raises `UserError` that names the file, and the line if there is one, for a log that cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"There is no log at {path}: make the run first.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: make the run again to write a whole log.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    return parse_log(log_lines(text), str(path))


def log_lines(text: str) -> list[str]:
    """Return the lines of a log. Only a line feed ends one: inside a JSON string, U+2028 is a character."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def parse_log(lines: Iterable[str], source: str) -> list[Record]:
    """Return all records: numbers, None, and tables of them.

    Raises `UserError` that names `source` and the line that cannot be read or holds anything else.
    """
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_parse_record(line))
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise UserError(f"{source}, line {number}: not a record of a run ({reason}): make the run again.") from None
    return records


def _parse_record(line: str) -> Record:
    """Return one record. Raises `ValueError` for what is not strict JSON, or a value that no run writes."""
    found = json.loads(line, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object)
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    record = {key: from_strict(value) for key, value in found.items()}
    for key, value in record.items():
        if key in ("step", "epoch") and not (type(value) is int and 0 <= value <= _LAST_STEP):
            raise ValueError(f"{key} is not a whole number from 0")
        if key in _TABLES and not _is_table(value):
            raise ValueError(f"{key!r} is not a table of numbers")
        if key not in _TABLES and not _is_number(value):
            raise ValueError(f"{key[:40]!r} is not a number")
    return record


def batch_records(records: Iterable[Record]) -> list[Record]:
    """Return the records of batches: those with a `step`."""
    return [record for record in records if "step" in record]


def epoch_records(records: Iterable[Record]) -> list[Record]:
    """Return the records of epochs: those without a `step`."""
    return [record for record in records if "step" not in record]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not strict JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large for a number")
    return number


def _object(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):  # two readers could take two different values
        raise ValueError("a key is there twice")
    return record


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_number(item) or _is_table(item) for item in value.values())


def _is_number(value: Any) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= _LAST_STEP
    return value is None or isinstance(value, float)
