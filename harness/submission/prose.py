"""The numbers in a report's text that are said of a signal of the log, and whether a log holds them.

No words are read, in any language. A number counts if it stands beside the name of a signal: in the same clause, in the
same column of a table, or in the same line of a snippet. Every other number is neutral.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from harness.submission.log_values import NESTED_SIGNALS, SIGNALS, LogValues, is_fraction
from harness.submission.numbers import NumberInText, agrees, numbers_in
from harness.submission.report import Block, Body

Verdict = Literal["true", "wrong", "neutral"]

TEXT_LIMIT = 20_000  # characters; 500 words are about 4,000, and snippets come on top
_REACH = 60  # characters between a signal and its number
# What a stranger's text may make us compare: a report of 500 words has some 50 numbers beside signals.
_NUMBERS, _SIGNALS, _LINES, _CELLS = 400, 12, 200, 60
_SNIPPET_DIGITS = 3  # fewer agree with some value of a log by chance

_NAME = re.compile(r"(`?)(?<![A-Za-z0-9_.])([A-Za-z][A-Za-z0-9_]{1,60}(?:\.[A-Za-z0-9_]{1,60}){0,8})")
_CLAUSE = re.compile(r"[;!?。；！？，、]|[.,:](?=\s|$)|\n\s*\n")
# A bound, a rough figure, a range, a difference, or a term of a calculation is no value of a log.
_NOT_A_VALUE_BEFORE = re.compile(r"[<>≤≥≈~±×x*/÷^+∼–-]\s?$|\S\s?=\s?$")
_NOT_A_VALUE_AFTER = re.compile(r"\s?[×x*/÷^–∼-]")
# Of a classifier of ten classes: the first loss, chance, and bounds that people write beside their values.
_CONSTANTS = (math.log(10), math.log(math.e + 9) - 1, 0.0, 0.1, 0.5, 0.9, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class StatedNumber:
    """A number of the text, the half-open range of characters that it takes, what it may be a value of, a verdict."""

    text: str
    start: int
    end: int
    signals: tuple[str, ...]
    verdict: Verdict


def judge_numbers(
    body: Body, logs: Sequence[LogValues], sources: Iterable[str] = ()
) -> tuple[StatedNumber, ...]:
    """Return every number of the text that is said of a signal, in order, with its verdict.

    It is `true` if one of the logs holds it for that signal, by any usual rounding or truncation. One that stands in
    one of the `sources`, or is a constant of this field, is neutral and not `wrong`.
    """
    known = {*_CONSTANTS, *(value for source in sources for value in _literals(source))}

    def is_known(text: str, signals: Sequence[str]) -> bool:
        fraction = any(map(is_fraction, signals))
        return any(agrees(text, value, fraction=fraction) for value in known)

    found: list[StatedNumber] = []
    for block in body.blocks:
        if block.start >= TEXT_LIMIT:
            break
        for number, signals, exact in islice(_stated(block), _NUMBERS - len(found)):
            if any(log.holds(number.text, signal) for log in logs for signal in signals):
                verdict: Verdict = "true"
            else:
                verdict = "neutral" if not exact or is_known(number.text, signals) else "wrong"
            place = block.start + number.start
            found.append(StatedNumber(number.text, place, place + len(number.text), signals, verdict))
    return tuple(sorted(found, key=lambda item: item.start))


def wrong_numbers(numbers: Iterable[StatedNumber]) -> list[str]:
    """Return the wrong numbers, each with the signal that it is said of."""
    return [f"{number.text} ({number.signals[0]})" for number in numbers if number.verdict == "wrong"]


def agreement(numbers: Iterable[StatedNumber]) -> str:
    """Return the sentence for a text without a wrong number."""
    count = sum(number.verdict == "true" for number in numbers)
    verb = "number agrees" if count == 1 else "numbers agree"
    return f"{count} {verb} with the logs, and none disagrees."


def shows_log(body: Body, logs: Sequence[LogValues]) -> bool:
    """Return whether a snippet (fence, indented block, table or quotation) holds a line or a row of a log."""
    lines = 0
    for block in body.blocks:
        quoted = block.kind == "prose" and block.text.lstrip().startswith(">")
        if block.start >= TEXT_LIMIT or lines >= _LINES:
            break
        if block.kind != "code" and not quoted:
            continue
        lines += len(block.lines)
        for number, signals, _ in islice(_in_code(block.lines), _NUMBERS):
            # A line that names the rate alone is one of the experiment.
            if any(log.holds(number.text, signal) for log in logs for signal in signals if signal != "lr"):
                return True
        if any(_is_row(line, log) for line in block.lines[:_LINES] for log in logs):
            return True
    return False


def _is_row(line: str, log: LogValues) -> bool:
    """Return whether a line without names holds two values of one record, as a log or a table prints them."""
    numbers = list(islice(numbers_in(line[:2_000]), 12))
    values = [item.text for item in numbers if item.significant_digits >= _SNIPPET_DIGITS][:6]
    places = [int(item.text) for item in numbers if re.fullmatch("[0-9]{1,7}", item.text)][:2]
    signals = [name for name in log.series if "." not in name]
    return any(
        sum(any(log.agrees(text, name, place) for name in signals) for text in values) >= 2
        for place in places
    )


@lru_cache(maxsize=64)
def _literals(source: str) -> frozenset[float]:
    found = set()
    for number in numbers_in(source[:100_000]):
        with suppress(ValueError):
            found.add(float(number.text))
    return frozenset(found)


def _stated(block: Block) -> Iterator[tuple[NumberInText, tuple[str, ...], bool]]:
    """Yield numbers, the signals that they may be values of, and whether they are meant as exact values."""
    if block.kind == "code":
        yield from _in_code(block.lines)
    else:
        yield from _in_prose(block.text)


def _in_prose(text: str) -> Iterator[tuple[NumberInText, tuple[str, ...], bool]]:
    names = _names(text, bare=False)
    if not names:
        return
    numbers = list(numbers_in(text))
    inside = {at for number in numbers for at in range(number.start, number.end)}
    ends = [match.end() for match in _CLAUSE.finditer(text) if match.start() not in inside]
    for number in numbers:
        if not number.is_measured or any(start <= number.start < end for _, start, end in names):
            continue
        clause = max((end for end in ends if end <= number.start), default=0)
        before = [item for item in names if clause <= item[1] and item[2] <= number.start]
        if before and number.start - before[-1][2] <= _REACH:
            between = text[before[-1][2] : number.start]
            directly = re.fullmatch(r"[`*\s]*[=:：]?\s*", between) is not None
            exact = directly or not _NOT_A_VALUE_BEFORE.search(between)
            exact = exact and not _NOT_A_VALUE_AFTER.match(text, number.end)
            yield number, (before[-1][0],), exact
        else:
            after = [item for item in names if item[1] >= number.end]
            if after and not text[number.end : after[0][1]].strip("` *"):
                yield number, (after[0][0],), not _NOT_A_VALUE_BEFORE.search(text[: number.start])


def _in_code(lines: Sequence[str]) -> Iterator[tuple[NumberInText, tuple[str, ...], bool]]:
    """Yield the numbers of a snippet: of JSON records, of columns under the names of signals, and after a name."""
    columns: list[tuple[str, ...]] = []
    at = 0
    for line in lines:
        names = _names(line, bare=True)[:_CELLS]
        numbers = list(islice(numbers_in(line), _CELLS))
        own = [item for item in numbers if not any(start <= item.start < end for _, start, end in names)]
        if names and not own:
            cells = _cells(line)
            columns = [tuple(name for name, start, end in names if a <= start < b) for a, b in cells]
        elif names:
            for number in own:
                before = [item for item in names if item[2] <= number.start]
                if before and (
                    _is_record(line) or not re.search(r"[A-Za-z]", line[before[-1][2] : number.start])
                ):
                    yield _moved(number, at), (before[-1][0],), number.is_measured
        elif columns and own:
            cells = _cells(line)
            every = tuple(dict.fromkeys(name for cell in columns for name in cell))
            for number in own:
                index = next((i for i, (a, b) in enumerate(cells) if a <= number.start < b), 0)
                signals = (columns[index] if len(cells) == len(columns) else every)[:_SIGNALS]
                if signals and number.is_measured:
                    yield _moved(number, at), signals, True
        at += len(line) + 1


def _moved(number: NumberInText, by: int) -> NumberInText:
    return NumberInText(number.text, number.start + by, number.end + by)


def _is_record(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _cells(line: str) -> list[tuple[int, int]]:
    """Return where the first cells of a row begin and end: between bars, or else between runs of spaces."""
    if "|" in line:
        inner = line.strip()
        begin = line.index(inner) + inner.startswith("|")
        bounds = [begin - 1, *(i for i, mark in enumerate(line) if mark == "|" and i >= begin)]
        if not inner.endswith("|"):
            bounds.append(len(line))
        return [(a + 1, b) for a, b in islice(pairwise(bounds), _CELLS)]
    return [match.span() for match in islice(re.finditer(r"\S+", line), _CELLS)]


def _names(text: str, *, bare: bool) -> list[tuple[str, int, int]]:
    """Return the signals that a text names, with their places; a plain word such as loss needs backticks, or `bare`."""
    found = []
    for match in _NAME.finditer(text):
        name = match[2]
        top, _, rest = name.partition(".")
        if top not in SIGNALS or (rest and top not in NESTED_SIGNALS):
            continue
        if bare or match[1] or "_" in name or rest:
            found.append((name, match.start(2), match.end(2)))
    return found
