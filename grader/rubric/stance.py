"""How a sentence holds a cause: offers it, rules it out, only supposes it, or compares with it."""

from typing import Literal

from grader.rubric.phrases import Span
from grader.rubric.sentences import Sentence
from grader.rubric.wording import (
    AFTER_RULED_OUT,
    BEFORE_RULED_OUT,
    CAUSAL,
    COMPARISON,
    CONTRASTS,
    DETERMINERS,
    HYPOTHESIS,
    LIST_RULED_OUT,
    NEGATORS,
    NOT_NEGATIONS,
    PRONOUNS,
    TRANSPARENT,
    VERBS,
    WOULD,
)

Stance = Literal["offered", "ruled out", "supposed", "compared"]
_LIST_REACH = 14  # words: "it was not the labels, the softmax, the seed or the learning rate"


def stance_of(
    sentence: Sentence, parts: tuple[Span, ...], following: Sentence | None, limit: int | None = None
) -> Stance:
    """Return how a sentence holds what its words `parts` say together.

    `following` is the sentence after it, in which it may be taken back; `limit` is the word at which the next
    cause begins, if there is one: what comes later is said of that one.
    """
    if sentence.lead is not None and sentence.lead.find(LIST_RULED_OUT):
        return "ruled out"
    start, end = min(part.start for part in parts), max(part.end for part in parts)
    # "It is not that of the batch: it is never cleared" denies the first clause, not the second.
    last = sentence.clauses[max(part.start for part in parts)]
    within = [
        index
        for index in range(start, end)
        if sentence.clauses[index] == last and not any(p.start <= index < p.end for p in parts)
    ]
    if any(_negates(sentence, index) for index in within) or _negated_before(sentence, start):
        return "ruled out"
    if _ruled_out_after(sentence, end, len(sentence.words) if limit is None else limit):
        return "ruled out"
    if _reaches(sentence, COMPARISON, start):
        return "compared"
    listed = sentence.lead is not None and bool(sentence.lead.find(HYPOTHESIS))
    supposed = listed or sentence.is_question or _supposed(sentence, start, end)
    if supposed and any(word in CONTRASTS for word in sentence.line.words[end:]):
        return "ruled out"  # "I first suspected the rate, but ..."
    if following is not None and _taken_back(following, supposed):
        return "ruled out"
    return "supposed" if supposed else "offered"


def _negates(sentence: Sentence, index: int) -> bool:
    return sentence.line.words[index] in NEGATORS and not any(
        span.start <= index < span.end for span in sentence.find(NOT_NEGATIONS)
    )


def _negated_before(sentence: Sentence, start: int) -> bool:
    """Say whether a negation, or a word such as "instead of", leads up to the word `start`."""
    introduced = any(
        span.end <= start and ":" in sentence.between(span.end - 1) for span in sentence.find(LIST_RULED_OUT)
    )
    return introduced or _reaches(sentence, BEFORE_RULED_OUT, start) or _negator_leads(sentence, start)


def _negator_leads(sentence: Sentence, start: int) -> bool:
    words = sentence.line.words
    only_transparent = True
    for index in range(start - 1, max(-1, start - 1 - _LIST_REACH), -1):
        if sentence.is_cut_after(index):
            return False
        if _negates(sentence, index):
            # "Not the labels, nor the rate" is a list; "does not fall, the rate is too high" is none.
            return only_transparent or words[index + 1] in DETERMINERS
        word = words[index]
        if word in TRANSPARENT:
            continue
        only_transparent = False
        if word in CONTRASTS or word in CAUSAL or word in VERBS:
            return False
    return False


def _reaches(sentence: Sentence, phrases: tuple[str, ...], start: int) -> bool:
    """Say whether one of the phrases stands before the word `start`, with nothing but small words in between."""
    words = sentence.line.words
    for span in sentence.find(phrases):
        # "Apart from that, the rate ..." has nothing to do with the rate.
        same_clause = span.end <= start and sentence.clauses[span.end - 1] == sentence.clauses[start]
        if same_clause and all(word in TRANSPARENT for word in words[span.end : start]):
            return True
    return False


def _ruled_out_after(sentence: Sentence, end: int, limit: int) -> bool:
    words = sentence.line.words
    for span in sentence.find(AFTER_RULED_OUT):
        between = words[end : span.start]
        # "It was too large, so clipping did not help" says nothing against it.
        if end <= span.start < limit and not any(word in CAUSAL for word in between):
            return True
    return False


def _supposed(sentence: Sentence, start: int, end: int) -> bool:
    words = sentence.line.words
    for span in sentence.find(HYPOTHESIS):
        if span.end <= start and not any(word in CONTRASTS for word in words[span.end : start]):
            return True
    return any(end <= span.start <= end + 3 for span in sentence.find(WOULD))


def _taken_back(following: Sentence, supposed: bool) -> bool:
    first = following.line.words[0]
    if supposed and first in CONTRASTS:
        return True
    if not supposed and first not in (*CONTRASTS, *PRONOUNS):
        return False
    return any(
        not any(word in CAUSAL for word in following.line.words[: span.start])
        for span in following.find(AFTER_RULED_OUT)
    )
