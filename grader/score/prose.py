"""What kind of text a report is: prose, a list of terms, the exercise's own words, nothing, or not English."""

import re
from typing import Literal

from grader.score.document import Document
from grader.score.enumerations import is_list_of_terms, only_terms, small_words
from grader.score.prompt import read_prompt, without_prompt
from grader.score.sentences import Sentence
from grader.score.wording import FOREIGN_WORDS, FUNCTION_WORDS, VERBS

Kind = Literal["prose", "nothing", "a list of terms", "the exercise's own words", "not in English"]

_FEW = 5  # words: "the learning rate was too large" has six
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
    own = without_prompt(document, read_prompt(prompt))
    if document.word_count < _FEW:
        return "nothing"
    if own.word_count < _FEW:
        return "the exercise's own words"
    cause = [s for s in own.sentences if s.part == "root cause"]
    if only_terms(cause or own.sentences):
        return "a list of terms"
    told = sum(len(s.words) for s in own.sentences if _says_something(s))
    # A note such as "grad_norm = 470" is neither.
    listed = sum(len(s.words) for s in own.sentences if not _says_something(s) and not _FIGURE.search(s.text))
    headed = sum(words >= _NOTED for words in document.headed.values()) >= _PARTS
    enumerated = any(is_list_of_terms(s) for s in own.sentences if s.part in ("root cause", None))
    return "prose" if told >= max(1, listed) or (headed and not enumerated) else "a list of terms"


def _says_something(sentence: Sentence) -> bool:
    words = sentence.line.words
    if is_list_of_terms(sentence):
        return False
    return any(word in VERBS for word in words) or (small_words(sentence) >= 0.25 and len(words) >= 4)


def _is_foreign(document: Document) -> bool:
    letters = [c for sentence in document.sentences for c in sentence.text if c.isalpha()]
    beyond_latin = sum(ord(c) > 0x24F for c in letters)
    if len(letters) >= 20 and beyond_latin >= 0.3 * len(letters):
        return True
    words = [word for sentence in document.sentences for word in sentence.line.words if word.isalpha()]
    english = sum(word in FUNCTION_WORDS for word in words)
    foreign = sum(word in FOREIGN_WORDS for word in words)
    return len(words) >= 10 and foreign >= 0.15 * len(words) and foreign > 2 * english
