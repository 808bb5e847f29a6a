"""Slips of the pen that change what the rules read: letters twisted in a technical term, "to much" for "too much"."""

from collections.abc import Iterator
from functools import lru_cache

from grader.score.words import word_set

# Terms whose neighbours by one letter are no words of their own.
_TERMS = word_set(
    """softmax gradient gradients learning accuracy dropout accumulate accumulates accumulated momentum
    evaluation optimizer permutation overshoot overshoots underflow underflows initialization probability
    probabilities divergence because instead convinced validation reduction forgotten autocast precision
    backward literally symptom verification afterwards training"""
)
_SHORTEST = 6  # letters
_DEGREES = word_set("""big large high long small low great strong few short little""")
_BEFORE_DEGREE = word_set(
    """is are was were its way much far times be being get gets still just bit a so been really all"""
)
_AFTER_ITS = word_set(
    """a an the not too like just so because way far about basically always never still called set missing
    wrong only really also probably obviously clearly supposed"""
)


@lru_cache(maxsize=1)
def _without_a_letter() -> dict[str, str]:
    return {key: term for term in sorted(_TERMS) if len(term) >= _SHORTEST for key in _shorter(term)}


def _shorter(word: str) -> set[str]:
    return {word[:at] + word[at + 1 :] for at in range(len(word))}


@lru_cache(maxsize=4096)
def corrected(word: str) -> str:
    """Return the technical term that a lower-case word was meant to be: one letter missing, too many, or wrong."""
    if len(word) < _SHORTEST - 1 or word in _TERMS or not word.isalpha() or word.endswith("ing"):
        return word
    known = _without_a_letter()
    if word in known:  # a letter is missing
        return known[word]
    for key in sorted(_shorter(word)):
        if key in _TERMS and len(key) >= _SHORTEST:  # one too many
            return key if not word.endswith(("s", "d", "r")) else word
        # One is wrong, or two are twisted: an inflection is neither.
        if key in known and len(known[key]) == len(word) and known[key][:1] == word[:1]:
            return known[key]
    return word


def meant_words(words: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield the words that were meant, each with its place: "to much" is "too much", "its missing" "it is missing"."""
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        before = words[at - 1] if at else ""
        meant = following in ("much", "many") or (following in _DEGREES and before in _BEFORE_DEGREE)
        if word == "to" and meant:
            yield at, "too"
        elif word == "its" and _is_verb(following):
            yield at, "it"
            yield at, "is"
        else:
            yield at, corrected(word)


def _is_verb(following: str) -> bool:
    """Say whether "its", before this word, means "it is"."""
    return following in _AFTER_ITS or following[:1].isdigit()
