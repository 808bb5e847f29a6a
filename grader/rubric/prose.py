"""What kind of text a report is: prose, a list of terms, the exercise's own words, nothing, or not English."""

import re
from typing import Literal

from grader.rubric.document import Document
from grader.rubric.sentences import Sentence
from grader.rubric.wording import FOREIGN_WORDS, FUNCTION_WORDS, VERBS
from grader.rubric.words import words_of

Kind = Literal["prose", "nothing", "a list of terms", "the exercise's own words", "not in English"]

_FEW = 5  # words: "the learning rate was too large" has six
_TRIPLE = 3
_PARTS, _NOTED = 3, 2  # parts with headings, and words under each
_FIGURE = re.compile(r"=\s?[-\d.]")


def kind_of_text(document: Document, prompt: str) -> Kind:
    """Return what kind of text the sentences of a document are; `prompt` is what the exercise says.

    Prose is text at least half of whose words stand in sentences that say something: with a verb, or with as
    many small words as English sentences have. Where three parts have headings, notes in telegraph style are read
    as well ("Learning rate 10, way too high."): the headings say what is claimed. An enumeration under "Root
    cause" stays one.
    """
    if _is_foreign(document):
        return "not in English"
    own = without_prompt(document, prompt)
    if document.word_count < _FEW:
        return "nothing"
    if own.word_count < _FEW:
        return "the exercise's own words"
    told = sum(len(s.words) for s in own.sentences if _says_something(s))
    # A note such as "grad_norm = 470" is neither.
    listed = sum(len(s.words) for s in own.sentences if not _says_something(s) and not _FIGURE.search(s.text))
    headed = sum(words >= _NOTED for words in document.headed.values()) >= _PARTS
    enumerated = any(_is_enumeration(s) for s in own.sentences if s.part in ("root cause", None))
    return "prose" if told >= max(1, listed) or (headed and not enumerated) else "a list of terms"


def without_prompt(document: Document, prompt: str) -> Document:
    """Return the document without the sentences that repeat the exercise's text."""
    known = _triples(tuple(word.text for word in words_of(prompt)))
    kept = tuple(s for s in document.sentences if not _repeats(s, known))
    return Document(kept, document.code, document.headed)


def _triples(words: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {words[at : at + _TRIPLE] for at in range(len(words) - _TRIPLE + 1)}


def _repeats(sentence: Sentence, known: set[tuple[str, ...]]) -> bool:
    own = _triples(sentence.line.words)
    return bool(own) and len(own & known) >= 0.8 * len(own)


def _says_something(sentence: Sentence) -> bool:
    words = sentence.line.words
    if _is_enumeration(sentence):
        return False
    return any(word in VERBS for word in words) or (_small(sentence) >= 0.25 and len(words) >= 5)


def _is_enumeration(sentence: Sentence) -> bool:
    """Say whether it is terms between commas, whatever verb is among them."""
    clauses = sentence.clauses[-1] + 1
    return clauses >= 6 and len(sentence.words) / clauses < 4 and _small(sentence) < 0.25


def _small(sentence: Sentence) -> float:
    return sum(word in FUNCTION_WORDS for word in sentence.line.words) / len(sentence.words)


def _is_foreign(document: Document) -> bool:
    letters = [c for sentence in document.sentences for c in sentence.text if c.isalpha()]
    beyond_latin = sum(ord(c) > 0x24F for c in letters)
    if len(letters) >= 20 and beyond_latin >= 0.3 * len(letters):
        return True
    words = [word for sentence in document.sentences for word in sentence.line.words if word.isalpha()]
    english = sum(word in FUNCTION_WORDS for word in words)
    foreign = sum(word in FOREIGN_WORDS for word in words)
    return len(words) >= 10 and foreign >= 0.15 * len(words) and foreign > 2 * english
