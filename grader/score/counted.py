"""Numbers that are no claim about a log: they count, say where or how far apart, or are part of a calculation."""

import re

from grader.score.number_words import (
    ARITHMETIC,
    COUNTED_AFTER,
    COUNTED_BETWEEN,
    DISTANCE_BEFORE,
    DISTANCE_OF,
    PLACE_BEFORE,
)
from grader.score.sentences import Sentence
from grader.score.written_numbers import digits_of, may_agree, value_of
from harness.submission.cited_numbers import agrees

_OPERATORS = tuple("+*/\u00d7\u00f7\u00b7^\u00b1")
_RESULT = re.compile(
    r"(?:[\d)]\s?[-+*/\u00d7\u00f7\u00b7x]\s?\(?[\d.,]+\)?|\b(?:ln|log|exp|sqrt)\s?\(?-?[\d.]+\)?)"
    r"\s?(?:=|\u2248|is|gives|or)\s?(?:about|~|\u2248)?\s?$"
)
_LISTED = ("and", "to", "or", "through", "then", "until", "respectively")
_THE = ("the", "all", "these", "its", "our", "my")
_MOST = 12  # numbers of a sentence among which one may be calculated from two others


def counted_numbers(sentence: Sentence, numbers: dict[int, tuple[str, ...]]) -> frozenset[int]:
    """Return those of the numbers of a sentence that plainly say nothing about a log."""
    counted: set[int] = set()
    last: int | None = None
    calculates = bool(sentence.find(ARITHMETIC))
    for index in numbers:
        is_counted = _counts(sentence, index) or (last is not None and _continues(sentence, last, index))
        last = index if is_counted else None
        if is_counted or (calculates and _is_calculated(index, numbers)):
            counted.add(index)
    return frozenset(counted)


def _counts(sentence: Sentence, index: int) -> bool:
    words = sentence.line.words
    start, end = sentence.words[index].start, sentence.words[index].end
    # "64 * 784 = 50176" is arithmetic; "loss = 50176" is not.
    if _is_in_a_formula(sentence.text, start, end) or _RESULT.search(
        sentence.text[max(0, start - 40) : start]
    ):
        return True
    if sentence.text[:start].rstrip().endswith("@"):  # "1.43 @ 7"
        return True
    before = words[index - 1] if index else ""
    two_before = words[index - 2] if index > 1 else ""
    if {before, two_before} & {"by", "over"} and _is_in_a_division(words[max(0, index - 4) : index]):
        return True
    after = words[index + 1] if index + 1 < len(words) else ""
    if after[:1] == "x" and after[1:].isdigit():
        return True
    if _noun_behind(sentence, index) in COUNTED_AFTER or before in DISTANCE_BEFORE:
        return True
    # "After 1 step: 31.8" has said already which step.
    said = two_before[:1].isdigit() and ":" in sentence.between(index - 1)
    if before in PLACE_BEFORE and not said:
        return True
    if _is_so_many_of(words[index + 1 : index + 5]) or _is_of_so_many(words[max(0, index - 4) : index]):
        return True
    # "The change is 0.2" is a distance, "eval_buffer_change is 0.2" is not.
    named = index > 1 and sentence.text[: sentence.words[index - 2].start].endswith("_")
    return before in ("of", "is", "no", "about") and two_before in DISTANCE_OF and not named


def _noun_behind(sentence: Sentence, index: int) -> str:
    """Return the noun that a number may count: "257 validation images", but not "2.3 (step 0)"."""
    for at in range(index + 1, min(index + 4, len(sentence.words))):
        if any(mark in sentence.between(at - 1) for mark in "(,:;"):
            return ""
        if sentence.line.words[at] not in COUNTED_BETWEEN:
            return sentence.line.words[at]
    return ""


def _is_in_a_division(words: tuple[str, ...]) -> bool:
    """Say whether the words before a number are "divided by" or "divided by some"."""
    return any(word.startswith(("divid", "multipl", "scal")) for word in words)


def _is_so_many_of(words: tuple[str, ...]) -> bool:
    """Say whether a number goes on with "out of 257", "of 257" or "of the 257"."""
    if words[:2] == ("out", "of"):
        return True
    rest = [word for word in words[1:] if word not in _THE]
    return words[:1] in (("of",), ("in",)) and bool(rest) and rest[0][0].isdigit()


def _is_of_so_many(words: tuple[str, ...]) -> bool:
    """Say whether the words before a number are "out of", "25 of" or "99 of the"."""
    told = [word for word in words if word not in _THE]
    return told[-2:] == ["out", "of"] or (told[-1:] == ["of"] and len(told) > 1 and told[-2][0].isdigit())


def _is_in_a_formula(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 4) : start].rstrip(" ("), text[end : end + 4].lstrip(" )")
    return before[-1:] in _OPERATORS or after[:1] in _OPERATORS


def _continues(sentence: Sentence, last: int, index: int) -> bool:
    """Say whether a number goes on with a list of places: steps 2, 3 and 4."""
    between = sentence.line.words[last + 1 : index]
    # "Step 1: 31.8" and "loss (step 1) = 31.8" go on with what is there.
    if any(mark in sentence.between(at) for at in range(last, index) for mark in ":=)"):
        return False
    return all(word in _LISTED for word in between)


def _is_calculated(index: int, numbers: dict[int, tuple[str, ...]]) -> bool:
    """Say whether a number is product, ratio, sum or difference of two others: "8.8 long (10 x 0.8778)"."""
    written = numbers[index][0]
    near = [value_of(w[0]) for at, w in numbers.items() if at != index][:_MOST]
    near = [value for value in near if value not in (0.0, 1.0)]
    if digits_of(written) < 2:  # a single digit agrees with too much
        return False
    for place, first in enumerate(near):
        for second in near[place + 1 :]:
            results = [first * second, first + second, abs(first - second)]
            results += [first / second, second / first]
            if any(may_agree(written, result) and agrees(written, result) for result in results):
                return True
    return False
