"""How the numbers of a sentence are written: each with the ways to read it, and which two are joined."""

import re
from collections.abc import Iterator
from itertools import pairwise

from grader.score.sentences import Sentence

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\.\d+")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b)")
_THOUSAND = re.compile(r"\s?k\b")
_DASH = re.compile(r"\s?%?\s?[-\u2013]\s?")


def written_numbers(sentence: Sentence) -> dict[int, tuple[str, ...]]:
    """Return the numbers of a sentence by their word, each with the ways in which it can be read."""
    found = {}
    for index, word in enumerate(sentence.words):
        if word.text[0].isdigit() or word.text.startswith("."):
            written = _readings(sentence.text, word.start, word.end)
            if written:
                found[index] = written
    # "9 to 10 %"
    for first, last in joined_numbers(sentence, found):
        if found[last][0].endswith("%") and not found[first][0].endswith("%"):
            found[first] += tuple(f"{reading}%" for reading in found[first])
    return found


def joined_numbers(sentence: Sentence, numbers: dict[int, tuple[str, ...]]) -> Iterator[tuple[int, int]]:
    """Yield the numbers that go together with the next one: "9 and 10", "9 to 10", "9-10"."""
    for first, last in pairwise(numbers):
        joined = last == first + 2 and sentence.line.words[first + 1] in ("to", "and")
        if joined or (last == first + 1 and _DASH.fullmatch(sentence.between(first))):
            yield first, last


def value_of(written: str) -> float:
    """Return the number that a reading stands for; 93 % is 0.93."""
    return float(written.rstrip("%")) / (100.0 if written.endswith("%") else 1.0)


def may_agree(written: str, value: float) -> bool:
    """Say whether a reading is near a value at all: far cheaper than whether it agrees with it."""
    number = value_of(written)
    return abs(number - value) <= max(abs(number), abs(value)) / 2


def digits_of(written: str) -> int:
    """Return how many significant digits are written."""
    mantissa = re.split("[eE]", written.rstrip("%"))[0]
    return len(mantissa.replace(".", "").replace("-", "").lstrip("0"))


def _readings(text: str, start: int, end: int) -> tuple[str, ...]:
    """Return how a number can be read: 1,402 with and without its comma, 93 % as a fraction, -0.03 with its sign."""
    before, after = text[max(0, start - 2) : start], text[end : end + 8]
    if before[-1:] in ("_", ".", "^", "/") or before[-1:].isalpha() or before == "^-":
        return ()  # a piece of a name, a path, a power or a version
    if after[:1] == "^" or (after[:1] in (".", "_") and after[1:2].isalnum()) or after[:1] == "/":
        return ()
    raw = text[start:end]
    choices = [raw]
    if "," in raw:
        choices = [re.sub(r",(?=\d{3}(?!\d))", "", raw), raw.replace(",", ".", 1)]
    sign = "-" if before[-1:] in ("-", "\u2212") and not before[:-1].strip(" (=:[,").isalnum() else ""
    found = []
    for choice in choices:
        if _NUMBER.fullmatch(choice):
            percent = "%" if _PERCENT.match(after) else ""
            thousand = "e3" if _THOUSAND.match(after) and "e" not in choice.lower() else ""
            found.append(f"{sign}{choice}{thousand}{percent}")
    return tuple(dict.fromkeys(found))
