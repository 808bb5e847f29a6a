"""Phrases as a lexicon writes them, and where they stand in a sentence.

A phrase is words with spaces between them: `learning rate` is those two words in that order. A word may be a
choice, `too big|large|high`; a star stands for any ending, `permut*`; three dots stand for up to four other
words, `loss ... summed`. Capitals, punctuation and the joints of identifiers do not matter: `zero grad` is
`zero_grad()` as well.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from grader.score.words import words_of

_DOTS = "..."
# The rubric looks for 300 groups of phrases, those of every lexicon included.
_PATTERNS = 1024
# 1,300 words and choices are in them, most of them more than once.
_CHOICES = 2048


@dataclass(frozen=True, order=True)
class Span:
    """The words [start, end) of a sentence."""

    start: int
    end: int

    def overlaps(self, other: "Span") -> bool:
        """Say whether a word belongs to both."""
        return self.start < other.end and other.start < self.end

    def holds(self, other: "Span") -> bool:
        """Say whether every word of the other belongs to this one."""
        return self.start <= other.start and other.end <= self.end


class Line:
    """The words of one sentence, made ready to be searched; `prefixes` is what a word of it begins with."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self._text = f" {' '.join(words)} "
        self._starts: list[int] = []
        at = 1
        for word in words:
            self._starts.append(at)
            at += len(word) + 1
        self.prefixes = frozenset(f"{word} "[:length] for word in words for length in range(1, len(word) + 2))
        self._found: dict[tuple[str, ...], list[Span]] = {}

    def find(self, phrases: tuple[str, ...]) -> list[Span]:
        """Return where phrases stand, in order, none overlapping another."""
        found = self._found.get(phrases)
        if found is None:
            found = self._found[phrases] = self._search(phrases)
        return [*found]

    def _search(self, phrases: tuple[str, ...]) -> list[Span]:
        # Most phrases are in few sentences: looking for how they begin takes a fraction of the search.
        if self.prefixes.isdisjoint(beginnings(phrases)):
            return []
        spans = []
        for match in _pattern(phrases).finditer(self._text):
            start = bisect_left(self._starts, match.start())
            spans.append(Span(start, bisect_left(self._starts, match.end())))
        return spans


@lru_cache(maxsize=_PATTERNS)
def beginnings(phrases: tuple[str, ...]) -> frozenset[str]:
    """Return what the first words of phrases begin with; a whole word with the space after it."""
    found = set()
    for choice in (choice for phrase in phrases for choice in phrase.split()[0].split("|")):
        first, *others = (word.text for word in words_of(choice.rstrip("*")))
        found.add(first if choice.endswith("*") and not others else f"{first} ")
    return frozenset(found)


@lru_cache(maxsize=_PATTERNS)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    # The longest first: where two begin at the same word, the one that says more is found.
    ordered = sorted(phrases, key=len, reverse=True)
    return re.compile(f"(?<= )(?:{'|'.join(_phrase(phrase) for phrase in ordered)})(?= )")


def _phrase(phrase: str) -> str:
    """Return a pattern. Between words is exactly one space, so that nothing in it can match in two ways."""
    pattern, separator = "", ""
    for word in phrase.split():
        if word == _DOTS:
            pattern += r" (?:[^ ]+ ){0,4}?"
            separator = ""
            continue
        pattern += separator + f"(?:{'|'.join(_choice(choice) for choice in word.split('|'))})"
        separator = " "
    return pattern


@lru_cache(maxsize=_CHOICES)
def _choice(choice: str) -> str:
    words = " ".join(re.escape(word.text) for word in words_of(choice.rstrip("*")))
    if not words:
        raise ValueError(f"{choice!r} holds no word")
    return words + ("[^ ]*" if choice.endswith("*") else "")


def check_phrase(phrase: str) -> str:
    """Return a phrase that can be searched for. Raises `ValueError` for one that cannot."""
    words = phrase.split()
    if not words or words[0] == _DOTS or words[-1] == _DOTS:
        raise ValueError(f"{phrase!r} must begin and end with a word")
    _phrase(phrase)
    return phrase
