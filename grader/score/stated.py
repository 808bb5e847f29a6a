"""The numbers of a text: how each is written, and what it is said of."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from grader.score.counted import counted_numbers
from grader.score.number_words import (
    ABOUT,
    ABOUT_AFTER,
    ABOVE,
    ARTICLES,
    BELOW,
    COPULAS,
    GOES_ON,
    NOUNS_OF_A_RUN,
    POINTING,
    RANGES,
    RESPECT,
    SHARES,
    SIGNAL_WORDS,
)
from grader.score.phrases import Span
from grader.score.sentences import Sentence, printable
from grader.score.wording import FUNCTION_WORDS, VERBS
from grader.score.written_numbers import joined_numbers, written_numbers

_REACH_BEFORE, _REACH_AFTER = 14, 3  # words between a signal and its number
# What stands left of an equals sign, without what is in brackets behind it: "|G_t|" in "|G_t| (max) = 2.29".
_LEFT_OF_EQUALS = re.compile(r"(\S+?)\s?(?:\([^()]{0,30}\))?\s?[=\u2248:]=?\s?[~\u2248]?\s?-?$")

Signals = tuple[str, ...]
Named = list[tuple[Span, Signals]]


@dataclass(frozen=True)
class Stated:
    """A number in a text: the ways in which it can be read, the signals it is said of, and how.

    `counts` is true where it plainly says how many, where, or how far apart. `bound` is how it is meant:
    "above 50", "below 0.5", "about 400", or just so. `other_end` is the other number of a range, as written.
    """

    written: tuple[str, ...]
    quote: str
    signals: Signals
    others: Signals
    counts: bool
    bound: str
    sentence: Sentence
    other_end: tuple[str, ...] = ()


def stated_numbers(sentence: Sentence, *, close: bool = False) -> Iterator[Stated]:
    """Yield the numbers of a sentence. With `close`, a signal must stand right before its number, as in a log."""
    numbers = written_numbers(sentence)
    if not numbers:
        return
    named = _signals(sentence)
    counted = counted_numbers(sentence, numbers)
    ends = _ranges(sentence, numbers, counted)
    others = tuple(dict.fromkeys(key for _, keys in named for key in keys))
    for index, written in numbers.items():
        nearest = _said_of(named, sentence, index, written, close)
        start = min(nearest[0].start, index) if nearest else index
        end = max(nearest[0].end, index + 1) if nearest else index + 1
        yield Stated(
            written=written,
            quote=f'"{printable(sentence.text[sentence.words[start].start : sentence.words[end - 1].end])}"',
            signals=nearest[1] if nearest else (),
            others=others,
            counts=index in counted,
            bound="between" if index in ends else _bound(sentence, index),
            sentence=sentence,
            other_end=numbers[ends[index]] if index in ends else (),
        )


def _ranges(
    sentence: Sentence, numbers: dict[int, tuple[str, ...]], counted: frozenset[int]
) -> dict[int, int]:
    """Return, of each number that is an end of a range, the other end: "9-10 %", "between 9 and 10 %"."""
    announced = [span.end for span in sentence.find(RANGES)]
    found: dict[int, int] = {}
    for first, last in joined_numbers(sentence, numbers):
        if first in counted or last in counted:
            continue
        before = bisect_right(announced, first) - 1
        if last == first + 1 or (before >= 0 and first - announced[before] <= _REACH_AFTER):
            found |= {first: last, last: first}
    return found


def _signals(sentence: Sentence) -> Named:
    """Return the signals named; of those that share words, the one with most."""
    found = [(span, keys) for phrases, keys in SIGNAL_WORDS for span in sentence.find(phrases)]
    found.sort(key=lambda item: (item[0].start - item[0].end, item[0].start))
    kept: Named = []
    taken: set[int] = set()
    for span, keys in found:
        if taken.isdisjoint(range(span.start, span.end)):
            taken.update(range(span.start, span.end))
            kept.append((span, keys))
    return sorted(kept)


def _said_of(
    named: Named, sentence: Sentence, index: int, written: tuple[str, ...], close: bool
) -> tuple[Span, Signals] | None:
    """Return the signal that a number is said of, or None where the text does not clearly say one."""
    if not close:
        share = _share(sentence, index, written)
        if share is not None:
            return share
    nearest = _nearest(named, sentence, index, close)
    if nearest is None or close:
        return nearest
    if _is_of_a_symbol(sentence, index, named) or _is_of_another_noun(sentence, nearest[0], index):
        return None
    # "The derivative with respect to the outputs is 1e-8": no log has that one.
    if any(span.end <= index for span in sentence.find(RESPECT)):
        return None
    return nearest


def _share(sentence: Sentence, index: int, written: tuple[str, ...]) -> tuple[Span, Signals] | None:
    """Return what "94.2 % of the validation digits" is said of."""
    if not written[0].endswith("%"):
        return None
    for phrases, keys in SHARES:
        for span in sentence.find(phrases):
            between = sentence.line.words[index + 1 : span.start]
            if 0 <= span.start - index - 1 <= 2 and {"percent", "per", "cent"}.issuperset(between):
                return span, keys
    return None


def _nearest(named: Named, sentence: Sentence, index: int, close: bool) -> tuple[Span, Signals] | None:
    at = bisect_left(named, index, key=lambda item: item[0].start)
    before = named[at - 1] if at and named[at - 1][0].end <= index else None
    after = named[at] if at < len(named) and named[at][0].start > index else None
    if close:
        return before if before and before[0].end == index else None
    if after and after[0].start - index <= _REACH_AFTER:
        between = sentence.line.words[index + 1 : after[0].start]
        same_clause = sentence.clauses[index] == sentence.clauses[after[0].start]
        # "0.94 validation accuracy", but not "an accuracy of 0.94 and a loss of 0.15"
        if same_clause and not between and not (before and index - before[0].end <= 2):
            return after
    if before and index - before[0].end <= _REACH_BEFORE:
        return before
    if after and after[0].start - index <= _REACH_AFTER:
        same_clause = sentence.clauses[index] == sentence.clauses[after[0].start]
        # "It is 48.1 and the accuracy is 0.097": the first number is said of something told before.
        goes_on = not GOES_ON.isdisjoint(sentence.line.words[index + 1 : after[0].start])
        return after if same_clause and not goes_on else None
    return None


def _is_of_a_symbol(sentence: Sentence, index: int, named: Named) -> bool:
    """Say whether it is set equal to something that is no signal: "N = 64", "|G_t| = 2.29"."""
    head = sentence.text[: sentence.words[index].start][-120:]
    left = _LEFT_OF_EQUALS.search(head)
    if left is None or left[0].rstrip("-~ ").endswith(":"):
        return False
    start = sentence.words[index].start - len(head) + left.start(1)
    end = start + len(left[1])
    own = [at for at, word in enumerate(sentence.words) if word.start < end and word.end > start]
    if not own or any(sentence.line.words[at][0].isdigit() for at in own):
        return False
    return not any(span.start <= at < span.end for span, _ in named for at in own)


def _is_of_another_noun(sentence: Sentence, signal: Span, index: int) -> bool:
    """Say whether something else is said to be so much: "... the gradient, and that first move is about 8.8"."""
    words = sentence.line.words
    at = index - 1
    while at > signal.end and (words[at] in ARTICLES or words[at] in ABOUT):
        at -= 1
    if signal.end > index or words[at] not in COPULAS or at - 1 < signal.end:
        return False
    noun = words[at - 1]
    if noun in NOUNS_OF_A_RUN or noun in FUNCTION_WORDS or noun in VERBS or not noun.isalpha():
        return False
    # The noun of a new clause, behind "the" or "each"; "the accuracy on the validation split is" goes on.
    clause = sentence.clauses[signal.end - 1]
    return sentence.clauses[at] != clause and any(
        word in POINTING for word in words[max(signal.end, at - 4) : at - 1]
    )


def _bound(sentence: Sentence, index: int) -> str:
    words = sentence.line.words
    if any(words[index + 1 : index + 1 + len(phrase)] == phrase for phrase in ABOUT_AFTER):
        return "about"
    at = index - 1
    while at >= 0 and index - at <= 3:
        if words[at] in ABOVE:
            return "above"
        if words[at] in BELOW:
            return "below"
        if words[at] in ABOUT:
            return "about"
        if words[at] not in ARTICLES:
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
