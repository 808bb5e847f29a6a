"""Judge whether the log lines in the text of a report show a value that differs from a healthy run.

Students paste records, lines that `harness show` prints, tables that other commands print, or their own tables in any
language. So a line counts if one of its numbers is a value of the run. If the line names a step or epoch, the number
must be a value at that step or epoch.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from harness.run.signals import is_fraction, place_of
from harness.submission.log_values import LogValues
from harness.submission.report import agrees, read_number

_NUMBER = re.compile(r"[+\-−]?(?:\d[\d.,]{0,60}(?:[eE][+-]?\d{1,3})?(?: ?%)?|\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE)
_PLACE = re.compile(r"\b(step|epoch)\b\W{0,4}(\d{1,9})", re.IGNORECASE)
_NESTED = re.compile(r"\b(?:grad_mean|grad_norm_by_parameter|activations)\.\w[\w.]{0,100}")
_MOST = 2000  # the largest number of numbers in a report that are compared


class _Value(NamedTuple):
    value: float
    signal: str
    place: int


def shows_departures(lines: Sequence[str], run: LogValues, healthy: Sequence[LogValues]) -> bool:
    """Return whether the lines show a value of a run that differs from a healthy run at the same step or epoch."""
    known, left = _values(run), _MOST
    for line in lines:
        named = [(kind.lower(), int(place)) for kind, place in _PLACE.findall(line)]
        nested = _known_values(dict.fromkeys(name.rstrip(".") for name in _NESTED.findall(line)), run)
        for match in _NUMBER.finditer(_PLACE.sub(" ", line)):
            text = match[0].rstrip(".,")
            near = [*_near(text, known), *_near(text, nested)]
            if any(
                agrees(text, one.value, fraction=is_fraction(one.signal))
                and any(run.differs(one.signal, one.place, other) for other in healthy)
                for one in _meant(near, text, line, named)
            ):
                return True
            if not (left := left - 1):
                return False
    return False


def _meant(near: Sequence[_Value], text: str, line: str, named: Sequence[tuple[str, int]]) -> Iterator[_Value]:
    """Yield the values that a number in a line may stand for.

    If the line names steps or epochs, only values there count. A number with one digit agrees with too many values, so
    its line must also name the signal. A line may name both a step and an epoch, as the record of a step does.
    """
    is_long = len(re.sub(r"\D", "", text).strip("0")) > 1 or not re.search(r"\d", text)
    places: dict[str, set[int]] = {"step": set(), "epoch": set()}
    for kind, place in named:
        places[kind].add(place)
    for one in near:
        stands_there = not named or one.place in places[place_of(one.signal) or "step"]
        if stands_there and (is_long or one.signal in line):
            yield one


def _near(text: str, known: "_Known") -> Sequence[_Value]:
    """Return the known values that a written number may stand for."""
    try:
        number = read_number(text)
    except ValueError:
        return ()
    if isinstance(number, float):
        return known.others
    found: list[_Value] = []
    for reading in number:
        for unit in (1.0, 0.01):  # the second unit is for fractions that are written as percentages
            middle, width = float(reading.value) * unit, float(reading.unit) * unit
            ends = bisect_left(known.keys, middle - width), bisect_right(known.keys, middle + width)
            found += known.finite[slice(*ends)]
    return found


class _Known(NamedTuple):
    """Values of a run: the finite values in increasing order, their numbers alone, and the non-finite values."""

    finite: Sequence[_Value]
    keys: Sequence[float]
    others: Sequence[_Value]


def _known_values(signals: Iterable[str], run: LogValues) -> _Known:
    found = [_Value(value, name, place) for name in signals for place, value in run.of(name).items()]
    finite = sorted(one for one in found if math.isfinite(one.value))
    return _Known(finite, [one.value for one in finite], [one for one in found if not math.isfinite(one.value)])


@lru_cache(maxsize=4)  # the many reports of a class cite only a few runs
def _values(run: LogValues) -> _Known:
    """Return the values of all signals that have one value for the whole network."""
    return _known_values(run.names(), run)
