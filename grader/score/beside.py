"""Whether a rival is offered beside the right cause, or told as what that one does."""

from grader.score.document import Document
from grader.score.lexicon import Lexicon
from grader.score.link_words import ADDING, BECAUSE, SO, SO_OPENING, THEN
from grader.score.mentions import Mention
from grader.score.phrases import Span
from grader.score.sentences import Sentence
from grader.score.stance_words import CONTRASTS
from grader.score.wording import FUNCTION_WORDS

_NEAR = 4  # words: "the rate is too large then", "too large for that"
_LATER = 3  # sentences after the one that names the cause


def is_told_of(document: Document, rival: Mention, own: list[Mention], lexicon: Lexicon) -> bool:
    """Say whether a rival's words tell the story of the right cause, which `own` are the places that offer it.

    Some rivals may be what another cause does: vanishing gradients, a rate that is too large by then. One of those
    counts for nothing where a word says so: "so", "which makes", "effectively", or "because" the other way round.
    A mistake in the code is never what another one does.
    """
    if not own:
        return False
    if any(rival.span.overlaps(span) for span in rival.sentence.find(lexicon.asides)):
        return True
    return rival.effect and any(_follows(document, rival, mention) for mention in own)


def _follows(document: Document, rival: Mention, own: Mention) -> bool:
    if own.sentence is rival.sentence:
        if rival.span.end <= own.span.start:
            gap = Span(rival.span.end, own.span.start)
            # "The activation is wrong: there is a second softmax"
            says_what = any(":" in rival.sentence.between(at) for at in range(gap.start - 1, gap.end))
            return (says_what or _holds(rival.sentence, BECAUSE, gap)) and not _adds(rival.sentence, gap)
        gap = Span(own.span.end, rival.span.start)
        return _tells_so(rival, gap) and not _adds(rival.sentence, gap)
    sentences = document.sentences
    place = next(index for index, sentence in enumerate(sentences) if sentence is own.sentence)
    after = sentences[place + 1 : place + 1 + _LATER]
    if not any(sentence is rival.sentence for sentence in after) or own.sentence.part != rival.sentence.part:
        return False
    head = Span(0, rival.span.start)
    opens = any(span.start == 0 for span in rival.sentence.find(SO_OPENING)) or _opens_with(
        rival.sentence, own
    )
    return (opens or _tells_so(rival, head)) and not _adds(rival.sentence, Span(0, rival.span.end))


def _opens_with(sentence: Sentence, own: Mention) -> bool:
    """Say whether it begins with "With the sum, ...", where the sum is what the right cause was told by."""
    words = sentence.line.words
    clause = {word for word, number in zip(words, sentence.clauses, strict=True) if number == 0}
    told = set(own.sentence.line.words[own.span.start : own.span.end]) - FUNCTION_WORDS
    return words[0] == "with" and bool(clause & told)


def _tells_so(rival: Mention, gap: Span) -> bool:
    sentence = rival.sentence
    clause = sentence.clauses[rival.span.end - 1]
    return _holds(sentence, SO, gap) or any(
        gap.start <= span.start <= rival.span.end + _NEAR and sentence.clauses[span.start] <= clause
        for span in sentence.find(THEN)
        if not _is_for_something(sentence, span)
    )


def _is_for_something(sentence: Sentence, span: Span) -> bool:
    """Say whether it goes on: "too small for this network" says nothing of "too small for this"."""
    if sentence.line.words[span.start] != "for" or span.end >= len(sentence.words):
        return False
    return not sentence.between(span.end - 1).strip() and sentence.line.words[span.end] not in FUNCTION_WORDS


def _holds(sentence: Sentence, phrases: tuple[str, ...], gap: Span) -> bool:
    return any(gap.holds(span) for span in sentence.find(phrases))


def _adds(sentence: Sentence, gap: Span) -> bool:
    words = sentence.line.words[gap.start : gap.end]
    return _holds(sentence, ADDING, gap) or any(word in CONTRASTS for word in words)
