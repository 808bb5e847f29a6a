"""Sentences that only string terms together: what a list of keywords looks like."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from grader.score.sentences import Sentence
from grader.score.wording import FUNCTION_WORDS, VERBS
from grader.score.words import word_set

# What stands between the terms of a list, besides what ends a clause: "labels / pairing | permutation + shuffle".
_SEPARATOR = re.compile(r"[,;:()\u2013\u2014|\u2022\u00b7]|\s[-/+&~]+\s|(?<=[^\W\d])/(?=[^\W\d])")
_TOKEN = re.compile(r"[^\s/]*\w[^\s/]*")
_TERMS, _WORDS_EACH = 6, 4  # so many, of fewer words than that on average, whatever verb is among them
_FEW_TERMS = 4  # so many without a verb
_BARE = 2  # or, without any small word either, of fewer words than that
_SMALL = 0.25  # share of small words that English sentences have
_JOINTS = ("and", "or")
_SAYING = 3  # words of a piece that says something
_NOTE = 7  # words: fewer may be a note
_STRUNG = 8  # words without one small word and without a verb between them
# Verbs that are nouns as well, and small words that go with a term: "overshoot", "too large".
_TERM_VERBS = word_set("overshoot drop rise fall jump change swing stall set cut accumulate scale sum need")
_TERM_WORDS = word_set("too very much more most out")
# What several things do, in words that are no names of things: "gradients below its smallest number vanish".
_PLURAL_VERBS = word_set(
    """vanish disappear explode diverge grow stay become get go come survive belong exceed contain learn keep forget
    differ agree disagree oscillate die stick arrive remain"""
)


def is_list_of_terms(sentence: Sentence) -> bool:
    """Say whether it is terms one after the other, with marks between them or nothing."""
    small = small_words(sentence)
    if _is_strung_on_arrows(sentence) or _is_a_list_of_nouns(sentence):
        return True
    if small >= _SMALL:
        return False
    terms, tokens = _terms(sentence), len(_TOKEN.findall(sentence.text))
    if terms >= _TERMS and tokens / terms < _WORDS_EACH:
        return True
    words = frozenset(sentence.line.words)
    if words.isdisjoint(FUNCTION_WORDS - _TERM_WORDS) and words.isdisjoint(VERBS - _TERM_VERBS):
        return tokens >= _STRUNG or (terms >= _FEW_TERMS and tokens / terms < _BARE)
    if small or _has_verb(sentence):
        return False
    return tokens >= _STRUNG or (terms >= _FEW_TERMS and tokens / terms < _BARE)


def _is_strung_on_arrows(sentence: Sentence) -> bool:
    """Say whether six terms or more stand between arrows, and nothing is said: "fp16 -> scaler -> autocast -> ..."."""
    words = [
        word.text for word in sentence.words if any(c.isalnum() for c in sentence.text[word.start : word.end])
    ]
    arrows = len(sentence.words) - len(words)
    silent = FUNCTION_WORDS.isdisjoint(words) and not any(
        word in VERBS or word[0].isdigit() for word in words
    )
    return arrows >= _TERMS - 1 and silent and len(words) < 2 * (arrows + 1)


def _is_a_list_of_nouns(sentence: Sentence) -> bool:
    """Say whether six pieces or more are terms with an article at most: "the rate, the step size, the loss, ..."."""
    pieces = [frozenset(piece) for piece in _pieces(sentence)]
    said = FUNCTION_WORDS - {"the", "a", "an", *_JOINTS, *_TERM_WORDS} | (VERBS - _TERM_VERBS)
    return len(pieces) >= _TERMS and all(piece.isdisjoint(said) for piece in pieces)


def only_terms(sentences: Sequence[Sentence]) -> bool:
    """Say whether nothing but terms stands in all of these: in no piece between two marks anything is said.

    A piece says something with a verb ("the step overshoots"), or with a small word ("way too large"). Two or
    three terms, "Missing zero_grad", are a note.
    """
    pieces = [piece for sentence in sentences for piece in _pieces(sentence)]
    tokens = sum(len(piece) for piece in pieces)
    return (len(pieces) >= _FEW_TERMS or tokens >= _NOTE) and not any(_says(piece) for piece in pieces)


def _pieces(sentence: Sentence) -> Iterator[tuple[str, ...]]:
    start, words = 0, sentence.line.words
    for at in range(len(words)):
        last = at + 1 == len(words)
        if last or _SEPARATOR.search(sentence.between(at)) or words[at + 1] in _JOINTS:
            yield words[start : at + 1]
            start = at + 1


def _says(words: tuple[str, ...]) -> bool:
    words = tuple(word for word in words if word not in _JOINTS)
    finite = any((word in VERBS and word.endswith("s")) or word in _PLURAL_VERBS for word in words)
    return len(words) >= _SAYING and (finite or not FUNCTION_WORDS.isdisjoint(words))


@lru_cache(maxsize=128)  # each of some thirty rivals asks again, for the sentences of one report
def is_enumeration(sentence: Sentence) -> bool:
    """Say whether a sentence only strings things together: four or more, without a verb."""
    return _terms(sentence) >= _FEW_TERMS and not _has_verb(sentence)


def small_words(sentence: Sentence) -> float:
    """Return the share of small words, such as "the" and "so"."""
    return sum(word in FUNCTION_WORDS for word in sentence.line.words) / len(sentence.words)


def _terms(sentence: Sentence) -> int:
    between = (sentence.between(at) for at in range(len(sentence.words) - 1))
    return 1 + sum(bool(_SEPARATOR.search(text)) for text in between)


def _has_verb(sentence: Sentence) -> bool:
    return any(word in VERBS for word in sentence.line.words)
