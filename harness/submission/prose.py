"""The numbers in a report's text that are said of a signal of the log, and whether a log holds them.

No words are read, in any language. A number counts if it stands beside the name of a signal: in the same clause, or
after it in the same line of a snippet or a table. Every other number is neutral.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Literal

from harness.submission.document import Body
from harness.submission.log_values import NESTED_SIGNALS, SIGNALS, LogValues, is_fraction
from harness.submission.numbers import NumberInText, agrees, numbers_in

Verdict = Literal["true", "wrong", "neutral"]

_REACH = 60  # characters between a signal and its number
# What a stranger's text may make us compare: a report of 500 words has some 50 numbers beside signals.
_NUMBERS, _LINES, _CELLS = 400, 200, 60
_SNIPPET_DIGITS = 3  # fewer agree with some value of a log by chance

_NAME = re.compile(r"(`?)(?<![A-Za-z0-9_.])([A-Za-z][A-Za-z0-9_]{1,60}(?:\.[A-Za-z0-9_]{1,60}){0,8})")
_CLAUSE = re.compile(r"[;!?。；！？，、]|[.,:](?=\s|$)|\n\s*\n")
# A bound, a rough figure, a range, a difference, or a term of a calculation is no value of a log.
_NOT_A_VALUE_BEFORE = re.compile(r"[<>≤≥≈~±×x*/÷^+∼–-]\s?$|\S\s?=\s?$")
_NOT_A_VALUE_AFTER = re.compile(r"\s?[×x*/÷^–∼-]")
# Of a classifier of ten classes: the first loss, chance, and bounds that people write beside their values.
_CONSTANTS = (math.log(10), math.log(math.e + 9) - 1, 0.0, 0.1, 0.5, 0.9, 1.0, 10.0, 100.0)


# A number, the signal that it may be a value of, and whether it is meant as an exact value.
_Stated = tuple[NumberInText, str, bool]


@dataclass(frozen=True)
class StatedNumber:
    """A number, the half-open range that it takes among the blocks of a text, its signal, and the verdict."""

    text: str
    start: int
    end: int
    signal: str
    verdict: Verdict


def judge_numbers(
    body: Body, logs: Sequence[LogValues], sources: Iterable[str] = ()
) -> tuple[StatedNumber, ...]:
    """Return every number of the text that is said of a signal, in order, with its verdict.

    It is `true` if one of the logs holds it for that signal, by any usual rounding or truncation. One that stands in
    one of the `sources`, or is a constant of this field, is neutral and not `wrong`.
    """
    known = {*_CONSTANTS, *(value for source in sources for value in _literals(source))}
    found: list[StatedNumber] = []
    for block in body.blocks:
        stated = _in_code(block.text) if block.kind == "code" else _in_prose(block.text)
        for number, signal, exact in islice(stated, _NUMBERS - len(found)):
            verdict: Verdict = "neutral"
            if any(log.holds(number.text, signal) for log in logs):
                verdict = "true"
            elif exact and not any(agrees(number.text, it, fraction=is_fraction(signal)) for it in known):
                verdict = "wrong"
            place = block.start + number.start
            found.append(StatedNumber(number.text, place, place + len(number.text), signal, verdict))
    return tuple(found)


def wrong_numbers(numbers: Iterable[StatedNumber]) -> list[str]:
    """Return the wrong numbers, each with the signal that it is said of."""
    return [f"{number.text} ({number.signal})" for number in numbers if number.verdict == "wrong"]


def agreement(numbers: Iterable[StatedNumber]) -> str:
    """Return the sentence for a text without a wrong number."""
    count = sum(number.verdict == "true" for number in numbers)
    verb = "number agrees" if count == 1 else "numbers agree"
    return f"{count} {verb} with the logs, and none disagrees."


def shows_log(body: Body, logs: Sequence[LogValues]) -> bool:
    """Return whether a snippet (fence, indented block, table or quotation) holds a line or a row of a log."""
    snippets = "\n".join(block.text for block in body.blocks if block.kind in ("code", "quotation"))
    # A line that names the rate alone is one of the experiment.
    stated = [item for item in islice(_in_code(snippets), _NUMBERS) if item[1] != "lr"]
    if any(log.holds(number.text, signal) for number, signal, _ in stated for log in logs):
        return True
    return any(_is_row(line, log) for line in snippets.split("\n")[:_LINES] for log in logs)


def _is_row(line: str, log: LogValues) -> bool:
    """Return whether a line without names holds a step or epoch and a value that some signal has there."""
    numbers = list(islice(numbers_in(line[:2_000]), 12))
    values = [item.text for item in numbers if item.significant_digits >= _SNIPPET_DIGITS][:6]
    places = [int(item.text) for item in numbers if re.fullmatch("[0-9]{1,7}", item.text)][:2]
    signals = [name for name in log.series if "." not in name]
    return any(log.agrees(text, name, place) for place in places for name in signals for text in values)


@lru_cache(maxsize=64)
def _literals(source: str) -> frozenset[float]:
    found = set()
    for number in numbers_in(source[:100_000]):
        with suppress(ValueError):
            found.add(float(number.text))
    return frozenset(found)


def _in_prose(text: str) -> Iterator[_Stated]:
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
            yield number, before[-1][0], exact
        else:
            after = [item for item in names if item[1] >= number.end]
            if after and not text[number.end : after[0][1]].strip("` *"):
                yield number, after[0][0], not _NOT_A_VALUE_BEFORE.search(text[: number.start])


def _in_code(text: str) -> Iterator[_Stated]:
    """Yield the numbers of a snippet that stand after the name of a signal, with no other word between them."""
    at = 0
    for line in text.split("\n"):
        names = _names(line, bare=True)[:_CELLS]
        for number in islice(numbers_in(line), _CELLS) if names else ():
            latest = ((name, end) for name, start, end in reversed(names) if start <= number.start)
            name, end = next(latest, ("", 0))
            if name and end <= number.start and not re.search("[A-Za-z]", line[end : number.start]):
                yield replace(number, start=number.start + at, end=number.end + at), name, number.is_measured
        at += len(line) + 1


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
