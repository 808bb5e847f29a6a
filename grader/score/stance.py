"""How a sentence holds a cause: offers it, rules it out, only supposes or imagines it, or compares with it."""

from typing import Literal

from grader.score.link_words import PRONOUNS
from grader.score.phrases import Line, Span
from grader.score.sentences import Sentence
from grader.score.stance_words import (
    AFTER_RULED_OUT,
    AFTER_SUPPOSED,
    AS_WELL,
    BEFORE_RULED_OUT,
    BUT,
    CAUSAL,
    CLEARED,
    COMPARISON,
    CONDITIONS,
    CONTRASTS,
    DETERMINERS,
    EXCLUDED,
    HYPOTHESIS,
    LIST_RULED_OUT,
    MIGHT,
    MORE_THAN,
    NEGATORS,
    NOT_NEGATIONS,
    TRANSPARENT,
    WOULD,
)
from grader.score.wording import VERBS

# "Imagined": what would follow, if it were so.
Stance = Literal["offered", "ruled out", "supposed", "imagined", "compared"]
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
    # "There is no problem with model.eval()": the "no" is not said of the call.
    if any(_reaches(sentence, CLEARED, part.start) for part in parts):
        return "ruled out"
    first_end = min(part.end for part in parts)
    # "Overfitting can be excluded because ..."
    if any(first_end <= span.start and span.end <= end for span in sentence.find(EXCLUDED)):
        return "ruled out"
    if _ruled_out_after(sentence, end, len(sentence.words) if limit is None else limit):
        return "ruled out"
    if _reaches(sentence, COMPARISON, start) or _is_more_than(sentence, start, end):
        return "compared"
    if _imagined(sentence, start, end):
        return "imagined"
    listed = sentence.lead is not None and bool(sentence.lead.find(HYPOTHESIS))
    guessed = any(end <= span.start for span in sentence.find(AFTER_SUPPOSED))
    supposed = listed or guessed or sentence.is_question or _supposed(sentence, start, end)
    if supposed and any(word in BUT for word in sentence.line.words[end:]):
        return "ruled out"  # "I first suspected the rate, but ..."
    if following is not None and _taken_back(following, supposed):
        return "ruled out"
    return "supposed" if supposed else "offered"


def _is_more_than(sentence: Sentence, start: int, end: int) -> bool:
    """Say whether it is told what it is not merely. "It is not only that, but also ..." is none of these."""
    return _reaches(sentence, MORE_THAN, start) and not Line(sentence.line.words[end:]).find(AS_WELL)


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
        if words[span.end : span.end + 1] in (("this",), ("that",)) and words[
            span.end + 1 : span.end + 2
        ] == ("the",):
            continue
        if same_clause and all(word in TRANSPARENT for word in words[span.end : start]):
            return True
    return False


def _ruled_out_after(sentence: Sentence, end: int, limit: int) -> bool:
    words = sentence.line.words
    for span in sentence.find(AFTER_RULED_OUT):
        between = words[end : span.start]
        # "It was too large, so clipping did not help" says nothing against it.
        # "Overfitting is likewise excluded", where "overfitting is" may be the whole cause.
        after = span.start >= end or (span.start == end - 1 and span.end > end)
        if after and span.start < limit and not any(word in CAUSAL for word in between):
            return True
    return False


def _supposed(sentence: Sentence, start: int, end: int) -> bool:
    words = sentence.line.words
    # "When labels are shuffled, the loss stays flat" tells of any run; "it explodes when ..." of this one.
    hypotheses = sentence.find(HYPOTHESIS) + [s for s in sentence.find(("when", "whenever")) if s.start == 0]
    return any(span.end <= start and not _turns(words[span.end : start]) for span in hypotheses) or any(
        end <= span.start <= end + 3 for span in sentence.find(MIGHT)
    )


def _imagined(sentence: Sentence, start: int, end: int) -> bool:
    """Say whether the words tell what would follow: "a missing call would show", "if it were missing, ..."."""
    guesses = sentence.find(MIGHT)
    woulds = [span for span in sentence.find(WOULD) if not any(span.overlaps(other) for other in guesses)]
    own = sentence.clauses[end - 1]
    if any(start <= span.start <= end + 3 and sentence.clauses[span.start] == own for span in woulds):
        return True
    conditions = [span for span in sentence.find(CONDITIONS) if span.end <= start]
    return any(span.start >= end for span in woulds) and any(
        not _turns(sentence.line.words[span.end : start]) for span in conditions
    )


def _turns(words: tuple[str, ...]) -> bool:
    """Say whether words turn against what stood before; "a sum instead of a mean" does not."""
    return any(
        word in BUT or (word in ("instead", "while") and words[at + 1 : at + 2] not in (("of",), ("the",)))
        for at, word in enumerate(words)
    )


def _taken_back(following: Sentence, supposed: bool) -> bool:
    first = following.line.words[0]
    if supposed and first in CONTRASTS:
        return True
    if not supposed and first not in (*CONTRASTS, *PRONOUNS):
        return False
    # "However, it did not" takes back; in "This may be the momentum, but lowering it did not help" another is.
    clause = following.clauses[1 if first in CONTRASTS and len(following.words) > 1 else 0]
    return any(
        (supposed or following.clauses[span.start] <= clause)
        and not any(word in CAUSAL for word in following.line.words[: span.start])
        and not _names_another(following, span)
        for span in following.find(AFTER_RULED_OUT)
    )


def _names_another(sentence: Sentence, span: Span) -> bool:
    """Say whether it goes on with what is ruled out: "It cannot be the labels", not "It cannot be the cause"."""
    words = sentence.line.words
    return (
        words[span.end - 1] == "be"
        and words[span.end : span.end + 1] in (("the",), ("a",), ("an",), ("due",), ("that",))
        and words[span.end + 1 : span.end + 2]
        not in (("cause",), ("reason",), ("problem",), ("root",), ("case",))
    )
