"""The numbers of a text: how each is written, and what it is said of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from grader.rubric.number_words import (
    ABOUT,
    ABOVE,
    BELOW,
    COUNTED_AFTER,
    COUNTED_BETWEEN,
    DISTANCE_BEFORE,
    DISTANCE_OF,
    PLACE_BEFORE,
    RANGES,
    SIGNAL_WORDS,
)
from grader.rubric.phrases import Span
from grader.rubric.sentences import Sentence, printable

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|\.\d+")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b)")
_THOUSAND = re.compile(r"\s?k\b")
_OPERATORS = tuple("+*/\u00d7\u00f7\u00b7^")
_RESULT = re.compile(
    r"[\d)]\s?[-+*/\u00d7\u00f7\u00b7x]\s?\(?[\d.,]+\)?\s?(?:=|is|gives|or)\s?(?:about|~|\u2248)?\s?$"
)
_REACH_BEFORE, _REACH_AFTER = 14, 3  # words between a signal and its number
_DASH = re.compile(r"\s?%?\s?[-\u2013]\s?")
_LISTED = ("and", "to", "or", "through", "then", "until", "respectively")
_ARTICLES = (
    "of",
    "only",
    "is",
    "was",
    "at",
    "even",
    "still",
    "just",
    "the",
    "a",
    "an",
    "to",
    "more",
    "well",
    "far",
)


@dataclass(frozen=True)
class Stated:
    """A number in a text: the ways in which it can be read, the signals it is said of, and how.

    `counts` is true where it plainly says how many, where, or how far apart. `bound` is how it is meant:
    "above 50", "below 0.5", "about 400", or just so. `other_end` is the other number of a range, as written.
    """

    written: tuple[str, ...]
    quote: str
    signals: tuple[str, ...]
    others: tuple[str, ...]
    counts: bool
    bound: str
    sentence: Sentence
    other_end: tuple[str, ...] = ()


def stated_numbers(sentence: Sentence, *, close: bool = False) -> Iterator[Stated]:
    """Yield the numbers of a sentence. With `close`, a signal must stand right before its number, as in a log."""
    named = _signals(sentence)
    last_counted: int | None = None
    numbers = dict(_numbers(sentence))
    pairs = _pairs(sentence, list(numbers))
    for first, last in pairs.items():  # "9 to 10 %"
        if numbers[last][0].endswith("%") and not numbers[first][0].endswith("%"):
            numbers[first] += tuple(f"{reading}%" for reading in numbers[first])
    ends = {first: last for first, last in pairs.items() if _is_range(sentence, first, last)}
    ends |= {last: first for first, last in ends.items()}
    for index, written in numbers.items():
        counts = _counts(sentence, index)
        before = sentence.line.words[index - 1] if index else ""
        if not counts and last_counted is not None and _continues(sentence, last_counted, index, before):
            counts = True
        last_counted = index if counts else None
        nearest = _nearest(named, sentence, index, close)
        start = min(nearest[0].start, index) if nearest else index
        end = max(nearest[0].end, index + 1) if nearest else index + 1
        yield Stated(
            written=written,
            quote=f'"{printable(sentence.text[sentence.words[start].start : sentence.words[end - 1].end])}"',
            signals=nearest[1] if nearest else (),
            others=tuple(dict.fromkeys(key for _, keys in named for key in keys)),
            counts=counts,
            bound="between" if index in ends else _bound(sentence, index),
            sentence=sentence,
            other_end=numbers[ends[index]] if index in ends else (),
        )


def _numbers(sentence: Sentence) -> Iterator[tuple[int, tuple[str, ...]]]:
    for index, word in enumerate(sentence.words):
        if word.text[0].isdigit() or word.text.startswith("."):
            written = _readings(sentence.text, word.start, word.end)
            if written:
                yield index, written


def _pairs(sentence: Sentence, numbers: list[int]) -> dict[int, int]:
    """Return the numbers that go together with the next one: "9 and 10", "9 to 10", "9-10"."""
    found = {}
    for first, last in pairwise(numbers):
        joined = last == first + 2 and sentence.line.words[first + 1] in ("to", "and")
        if joined or (last == first + 1 and _DASH.fullmatch(sentence.between(first))):
            found[first] = last
    return found


def _is_range(sentence: Sentence, first: int, last: int) -> bool:
    if _counts(sentence, first) or _counts(sentence, last):
        return False
    before = [
        span for span in sentence.find(RANGES) if span.end <= first and first - span.end <= _REACH_AFTER
    ]
    return last == first + 1 or bool(before)


def _readings(text: str, start: int, end: int) -> tuple[str, ...]:
    """Return how a number can be read: 1,402 with and without its comma, 93 % as a fraction, -0.03 with its sign."""
    before, after = text[max(0, start - 2) : start], text[end : end + 8]
    if before[-1:] in ("_", ".", "^", "/") or before[-1:].isalpha():
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


def _counts(sentence: Sentence, index: int) -> bool:
    words = sentence.line.words
    start, end = sentence.words[index].start, sentence.words[index].end
    # "64 * 784 = 50176" is arithmetic; "loss = 50176" is not.
    if _is_in_a_formula(sentence.text, start, end) or _RESULT.search(
        sentence.text[max(0, start - 40) : start]
    ):
        return True
    before = words[index - 1] if index else ""
    two_before = words[index - 2] if index > 1 else ""
    after = words[index + 1] if index + 1 < len(words) else ""
    if after[:1] == "x" and after[1:].isdigit():
        return True
    noun = next((word for word in words[index + 1 : index + 4] if word not in COUNTED_BETWEEN), "")
    if noun in COUNTED_AFTER or before in DISTANCE_BEFORE:
        return True
    # "After 1 step: 31.8" has said already which step.
    said = two_before[:1].isdigit() and ":" in sentence.between(index - 1)
    if before in PLACE_BEFORE and not said:
        return True
    if _is_so_many_of(words[index + 1 : index + 4]) or _is_so_many_of(
        words[max(0, index - 3) : index], back=True
    ):
        return True
    return before in ("of", "is", "no", "about") and two_before in DISTANCE_OF


def _is_so_many_of(words: tuple[str, ...], *, back: bool = False) -> bool:
    """Say whether a number goes on with "out of 257" or "of 257", or with `back` is the 257 of that."""
    if back:
        return words[-2:] == ("out", "of") or (
            words[-1:] == ("of",) and words[-2:-1] != () and words[-2][0].isdigit()
        )
    return words[:2] == ("out", "of") or (words[:1] == ("of",) and words[1:2] != () and words[1][0].isdigit())


def _is_in_a_formula(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 4) : start].rstrip(" ("), text[end : end + 4].lstrip(" )")
    return before[-1:] in _OPERATORS or after[:1] in _OPERATORS


def _continues(sentence: Sentence, last: int, index: int, before: str) -> bool:
    """Say whether a number goes on with a list of places: steps 2, 3 and 4."""
    between = sentence.line.words[last + 1 : index]
    # "Step 1: 31.8" and "loss (step 1) = 31.8" go on with what is there.
    if any(mark in sentence.between(at) for at in range(last, index) for mark in ":=)"):
        return False
    return all(word in _LISTED for word in between) and (before in _LISTED or index == last + 1)


def _signals(sentence: Sentence) -> list[tuple[Span, tuple[str, ...]]]:
    """Return the signals named; of those that share words, the one with most."""
    found = [(span, keys) for phrases, keys in SIGNAL_WORDS for span in sentence.find(phrases)]
    found.sort(key=lambda item: (item[0].start - item[0].end, item[0].start))
    kept: list[tuple[Span, tuple[str, ...]]] = []
    for span, keys in found:
        if not any(span.overlaps(other) for other, _ in kept):
            kept.append((span, keys))
    return sorted(kept)


def _nearest(
    named: list[tuple[Span, tuple[str, ...]]], sentence: Sentence, index: int, close: bool
) -> tuple[Span, tuple[str, ...]] | None:
    before = [item for item in named if item[0].end <= index]
    after = [item for item in named if item[0].start > index]
    if close:
        return before[-1] if before and before[-1][0].end == index else None
    if after and after[0][0].start - index <= _REACH_AFTER:
        between = sentence.line.words[index + 1 : after[0][0].start]
        same_clause = sentence.clauses[index] == sentence.clauses[after[0][0].start]
        # "0.94 validation accuracy", but not "an accuracy of 0.94 and a loss of 0.15"
        if same_clause and not between and not (before and index - before[-1][0].end <= 2):
            return after[0]
    if before and index - before[-1][0].end <= _REACH_BEFORE:
        return before[-1]
    if after and after[0][0].start - index <= _REACH_AFTER:
        same_clause = sentence.clauses[index] == sentence.clauses[after[0][0].start]
        # "It is 48.1 and the accuracy is 0.097": the first number is said of something told before.
        goes_on = not {"and", "while", "so"}.isdisjoint(sentence.line.words[index + 1 : after[0][0].start])
        return after[0] if same_clause and not goes_on else None
    return None


def _bound(sentence: Sentence, index: int) -> str:
    words = sentence.line.words
    at = index - 1
    while at >= 0 and index - at <= 3:
        if words[at] in ABOVE:
            return "above"
        if words[at] in BELOW:
            return "below"
        if words[at] in ABOUT:
            return "about"
        if words[at] not in _ARTICLES:
            break
        at -= 1
    text = sentence.text[: sentence.words[index].start].rstrip(" (-")
    return {
        "~": "about",
        "\u2248": "about",
        ">": "above",
        "<": "below",
        "\u2265": "above",
        "\u2264": "below",
    }.get(text[-1:], "")
