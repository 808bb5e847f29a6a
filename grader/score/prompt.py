"""What of a text repeats the exercise, word for word or rearranged."""

from functools import lru_cache

from grader.score.document import Document
from grader.score.sentences import Sentence
from grader.score.wording import FUNCTION_WORDS
from grader.score.words import words_of

_TRIPLE, _PAIR = 3, 2
# A sentence repeats the exercise where so many of its groups of three words stand there; and it retells it where so
# many of its words stand in pairs that are there too, and so many of those that are no small words anywhere there.
_REPEATED = 0.8
_IN_PAIRS, _KNOWN = 0.5, 0.6
_MOST, _AT_LEAST = 0.5, 12  # of the words where the cause is to be told, and so many in any case


class Prompt:
    """The words of an exercise's text, made ready to be compared with."""

    def __init__(self, text: str) -> None:
        words = tuple(word.text for word in words_of(text))
        self.words = frozenset(words) - FUNCTION_WORDS
        self._triples = _groups(words, _TRIPLE)
        self._pairs = _groups(words, _PAIR)

    def is_repeated_in(self, sentence: Sentence) -> bool:
        """Say whether a sentence is the exercise's, but for a word or two."""
        own = _groups(sentence.line.words, _TRIPLE)
        return bool(own) and len(own & self._triples) >= _REPEATED * len(own)

    def is_retold_in(self, sentence: Sentence) -> bool:
        """Say whether a sentence has mostly the exercise's words in its order, rearranged or with some between."""
        if self.is_repeated_in(sentence):
            return True
        words = sentence.line.words
        paired = [
            any(words[first : first + _PAIR] in self._pairs for first in (at - 1, at) if first >= 0)
            for at in range(len(words))
        ]
        telling = [word for word in words if word not in FUNCTION_WORDS]
        known = sum(word in self.words for word in telling)
        return sum(paired) >= _IN_PAIRS * len(words) and known >= _KNOWN * len(telling)


@lru_cache(maxsize=16)
def read_prompt(text: str) -> Prompt:
    """Return an exercise's text, ready to be compared with."""
    return Prompt(text)


def without_prompt(document: Document, prompt: Prompt) -> Document:
    """Return the document without the sentences that repeat the exercise's text."""
    kept = tuple(s for s in document.sentences if not prompt.is_repeated_in(s))
    return Document(kept, document.code, document.headed)


def only_retells(document: Document, prompt: Prompt, saying: list[Sentence]) -> bool:
    """Say whether the exercise is most of what is told as the cause, and nothing else there says anything.

    `saying` are the sentences that name a cause, right or wrong, or may do so.
    """
    told = [s for s in document.sentences if s.part in ("root cause", None)]
    retold = sum(len(s.words) for s in told if prompt.is_retold_in(s))
    most = retold >= _AT_LEAST and retold >= _MOST * sum(len(s.words) for s in told)
    return most and all(prompt.is_retold_in(s) for s in saying)


def _groups(words: tuple[str, ...], size: int) -> set[tuple[str, ...]]:
    return {words[at : at + size] for at in range(len(words) - size + 1)}
