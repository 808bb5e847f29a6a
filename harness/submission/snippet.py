"""The lines of a log in the text of a report: do they hold values in which a run differs from a healthy one?

People paste records, lines of `harness show`, tables of a command, or tables of their own in any language. So a line
counts by its numbers: one of them is a value of the run, at the step or the epoch that the line names, if it names one.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from harness.run.signals import is_fraction, place_of
from harness.submission.log_values import LogValues
from harness.submission.report import agrees, read_number

_NUMBER = re.compile(r"[+\-−]?(?:\d[\d.,]{0,60}(?:[eE][+-]?\d{1,3})?(?: ?%)?|\b(?:nan|inf(?:inity)?)\b)", re.IGNORECASE)
_PLACE = re.compile(r"\b(step|epoch)\b\W{0,4}(\d{1,9})", re.IGNORECASE)
_NESTED = re.compile(r"\b(?:grad_mean|grad_norm_by_parameter|activations)\.\w[\w.]{0,100}")
_MOST = 2000  # numbers of a report that are looked at


class _Value(NamedTuple):
    value: float
    signal: str
    place: int


def shows_departures(lines: Sequence[str], run: LogValues, healthy: Sequence[LogValues]) -> bool:
    """Return whether lines hold a value of a run at a place where it differs from one of these healthy runs.

    A number of one digit counts only beside its signal.
    """
    known, left = _values(run, tuple(healthy)), _MOST
    for line in lines:
        named = {(kind.lower(), int(place)) for kind, place in _PLACE.findall(line)}
        nested = [found for name in _NESTED.findall(line) for found in _of(name.rstrip("."), run, healthy)]
        for match in _NUMBER.finditer(_PLACE.sub(" ", line)):
            text = match[0].rstrip(".,")
            near = [*_near(text, known), *nested]
            if any(_stands_there(one, named, text, line) and _agrees(text, one) for one in near):
                return True
            if not (left := left - 1):
                return False
    return False


def _agrees(text: str, found: _Value) -> bool:
    return agrees(text, found.value, fraction=is_fraction(found.signal))


def _stands_there(found: _Value, named: set[tuple[str, int]], text: str, line: str) -> bool:
    """Return whether a line is about this value: by the places that it names, or its signal if the number says little.

    The record of a step names its epoch, too.
    """
    kind = place_of(found.signal)
    places = [place for what, place in named if what == kind]
    is_long = len(re.sub(r"\D", "", text).strip("0")) > 1 or not math.isfinite(found.value)
    return (found.place in places if named else True) and (is_long or found.signal in line)


def _near(text: str, known: "_Known") -> Sequence[_Value]:
    """Return the values that a number may stand for."""
    try:
        number = read_number(text)
    except ValueError:
        return ()
    if isinstance(number, float):
        return known.others
    found: list[_Value] = []
    for reading in number:
        for unit in (1.0, 0.01):  # a share may be written in per cent
            middle, width = float(reading.value) * unit, float(reading.unit) * unit
            ends = bisect_left(known.keys, middle - width), bisect_right(known.keys, middle + width)
            found += known.finite[slice(*ends)]
    return found


def _of(signal: str, run: LogValues, healthy: Sequence[LogValues]) -> Iterator[_Value]:
    """Yield the values of a signal that differ from a healthy run's."""
    places = dict.fromkeys(place for other in healthy for place in run.differences(signal, other))
    return (_Value(run.of(signal)[place], signal, place) for place in places)


class _Known(NamedTuple):
    """Values of a run: the finite ones in order, these numbers alone, and the others."""

    finite: Sequence[_Value]
    keys: Sequence[float]
    others: Sequence[_Value]


@lru_cache(maxsize=4)  # a class hands in many reports about a few runs
def _values(run: LogValues, healthy: tuple[LogValues, ...]) -> _Known:
    """Return these values of all signals that are not nested."""
    found = [one for name in run.names() for one in _of(name, run, healthy)]
    finite = sorted(one for one in found if math.isfinite(one.value))
    return _Known(finite, [one.value for one in finite], [one for one in found if not math.isfinite(one.value)])
