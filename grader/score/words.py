"""Texts as lower-case words: identifiers, contractions, arrows and numbers taken apart alike in text and phrase."""

import re
from dataclasses import dataclass

# Longer runs are no words of a report; cut, they cannot make a pattern slow.
WORD_LIMIT = 40

_TOKEN = re.compile(
    r"""(?P<number>\d+(?:[.,]\d+)*(?:[eE][+-]?\d{1,3})?|\.\d+)
      | (?P<symbol>!=|[≠&\u03a3\u2211\u2207]|\b[wW]/o\b|\b[wW]/(?=\s))
      | (?P<word>[^\W\d_][^\W_]*(?:'[^\W\d_]+)?)
      | (?P<arrow>-+>|=+>|→|⇒|⟹)""",
    re.VERBOSE,
)
_SYMBOLS = {
    "!=": "not", "\u2260": "not", "&": "and", "\u03a3": "sum", "\u03c3": "sum", "\u2211": "sum", "\u2207": "gradient",
    "w/o": "without", "w/": "with",
}  # fmt: skip
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z]{2,}$)")
_STEMS = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
# Written without the apostrophe, as people do.
_BARE = {
    word.replace("'", ""): word
    for word in (
        "don't", "doesn't", "didn't", "isn't", "wasn't", "aren't", "weren't", "can't", "couldn't", "won't",
        "wouldn't", "shouldn't", "hasn't", "haven't", "hadn't",
    )
}  # fmt: skip
# As people shorten them in notes; the lexicons know the whole words.
_SHORT = {
    "acc": "accuracy", "accs": "accuracies", "ckpt": "checkpoint", "ckpts": "checkpoints", "stats": "statistics",
    "stat": "statistic", "probs": "probabilities", "prob": "probability", "preds": "predictions",
    "params": "parameters", "param": "parameter", "grads": "gradients", "optim": "optimizer", "lrate": "lr",
    "lrs": "lr", "imgs": "images", "img": "image", "iters": "iterations", "thru": "through", "tho": "though",
    "cuz": "because", "bc": "because", "bcs": "because", "becuase": "because", "b4": "before",
}  # fmt: skip
_BARE |= {f"{word}s": f"{word}'s" for word in ("that", "there", "what", "here")}
_WITH_IS = ("it", "that", "there", "what", "here", "this", "which")


def word_set(words: str) -> frozenset[str]:
    """Return words that stand in one string with spaces between them."""
    return frozenset(words.split())


@dataclass(frozen=True)
class Word:
    """One word in lower case, and the characters [start, end) of the text that it was made of."""

    text: str
    start: int
    end: int


def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of a text. `optimizer.zero_grad()` is three, `isn't` is "is not", an arrow is "so"."""
    found: list[Word] = []
    for match in _TOKEN.finditer(text.replace("\u2019", "'")):
        start, end = match.span()
        if match["word"]:
            found += _parts(match["word"], start)
        elif match["number"]:
            found.append(Word(_number(match["number"]), start, end))
        else:
            found.append(Word(_SYMBOLS.get(match[0].lower(), "so"), start, end))  # an arrow
    return tuple(found)


def _number(written: str) -> str:
    """Return 10 for 10.0 and 1402 for 1,402: a phrase with a number in it is to match however it is written."""
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", written[:WORD_LIMIT])
    try:
        return f"{float(plain):.10g}"
    except ValueError:  # a version, 2.13.0
        return plain


def _parts(word: str, start: int) -> list[Word]:
    if "'" in word:
        return [Word(part, start, start + len(word)) for part in _contraction(word.lower())]
    if word.lower() in _BARE:
        return [Word(part, start, start + len(word)) for part in _contraction(_BARE[word.lower()])]
    if word.lower() == "cannot":
        return [Word("can", start, start + 6), Word("not", start, start + 6)]
    found, at = [], start
    for part in [word] if word.lower() == "relu" else _HUMP.split(word[:400]):
        plain = part.lower()[:WORD_LIMIT]
        found.append(Word(_SHORT.get(plain, plain), at, at + len(part)))
        at += len(part)
    return found


def _contraction(word: str) -> list[str]:
    if word.endswith("n't"):
        stem = word[:-3]
        return [_STEMS.get(stem, stem)[:WORD_LIMIT], "not"]
    stem, _, ending = word.partition("'")
    is_too = ending == "s" and stem in _WITH_IS
    return [stem[:WORD_LIMIT], "is"] if is_too else [stem[:WORD_LIMIT]]
