"""Where a text names a cause: the thing and, close to it, what is wrong with it."""

from collections.abc import Iterable
from dataclasses import dataclass

from grader.rubric.document import Document
from grader.rubric.lexicon import Cause
from grader.rubric.phrases import Span
from grader.rubric.sentences import Sentence
from grader.rubric.stance import Stance, stance_of
from grader.rubric.wording import BETWEEN, CONTRASTS, FRAMES, PRONOUNS, SUBJECTS

# Words between the thing and its fault, in the order "the rate is too large" and "too large a rate".
_FAULT_AFTER, _FAULT_BEFORE = 9, 4
_PAIRS = 16  # in one sentence; a hostile one has hundreds
_FRAME_REACH = 5  # words between "the root cause is" and the thing
_SHORT = 9  # words: under the heading "Root cause", a sentence as short as this names it and no more


@dataclass(frozen=True, eq=False)
class Mention:
    """A cause named in a sentence, and how the sentence holds it. `loose`: named as the cause, fault untold."""

    sentence: Sentence
    span: Span
    thing: Span
    stance: Stance
    loose: bool = False

    @property
    def quote(self) -> str:
        """The words of the mention, as written."""
        return f'"{self.sentence.at(self.span)}"'


def find_mentions(document: Document, causes: Iterable[Cause], *, across: bool = False) -> list[Mention]:
    """Return where a document names one of the causes, in order.

    With `across`, a fault may also stand at the head of the next sentence, where that one begins with a word
    that points back: "The rate is 10. That is far too large."
    """
    found = []
    for index, sentence in enumerate(document.sentences):
        following = document.sentences[index + 1] if index + 1 < len(document.sentences) else None
        pairs = [pair for cause in causes for pair in _pairs(sentence, cause)][:_PAIRS]
        starts = sorted(min(pair[0].start, pair[1].start) for pair in pairs)
        for thing, fault in pairs:
            span = Span(min(thing.start, fault.start), max(thing.end, fault.end))
            limit = next((start for start in starts if start >= span.end), None)
            found.append(
                Mention(sentence, span, thing, stance_of(sentence, (thing, fault), following, limit))
            )
        if across and not pairs and following is not None:
            found += [m for cause in causes for m in _across(sentence, following, cause)]
    return found


def _pairs(sentence: Sentence, cause: Cause) -> list[tuple[Span, Span]]:
    things = sentence.find(cause.thing)
    if not cause.fault:
        return [(thing, thing) for thing in things]
    if not things:
        return []
    faults = sentence.find(cause.fault)
    return [(thing, fault) for thing in things for fault in faults if _belong(sentence, thing, fault, cause)]


def _belong(sentence: Sentence, thing: Span, fault: Span, cause: Cause) -> bool:
    if thing.overlaps(fault):
        return True
    after = fault.start >= thing.end
    gap = Span(thing.end, fault.start) if after else Span(fault.end, thing.start)
    if not after and sentence.clauses[fault.start] != sentence.clauses[thing.start]:
        return False
    # "Too large for this network" is not said of the network, "too high would show at step 1" not of the step.
    if not after and not BETWEEN.isdisjoint(sentence.line.words[gap.start : gap.end]):
        return False
    if gap.end - gap.start > (_FAULT_AFTER if after else _FAULT_BEFORE):
        return False
    if any(word in CONTRASTS for word in sentence.line.words[gap.start : gap.end]):
        return False
    own = sentence.find(cause.thing)
    # "The rate is fine, the loss too large": the fault belongs to the nearest noun.
    return not any(
        gap.start <= subject.start < gap.end and not any(subject.overlaps(thing) for thing in own)
        for subject in sentence.find(SUBJECTS)
    )


def _across(sentence: Sentence, following: Sentence, cause: Cause) -> list[Mention]:
    if not cause.fault or not any(span.start == 0 for span in following.find(PRONOUNS)):
        return []
    things = sentence.find(cause.thing)
    faults = [span for span in following.find(cause.fault) if span.start <= _FAULT_AFTER]
    if not things or not faults:
        return []
    last = things[-1]
    if any(s.start >= last.end for s in sentence.find(SUBJECTS)):
        return []
    negated = stance_of(following, (faults[0],), None) == "ruled out"
    stance = "ruled out" if negated else stance_of(sentence, (last,), None)
    return [Mention(sentence, last, last, stance)]


def find_loose(document: Document, causes: Iterable[Cause]) -> list[Mention]:
    """Return where a sentence presents the thing as the cause without a word about what is wrong with it."""
    found = []
    named = tuple(phrase for cause in causes for phrase in cause.named)
    for index, sentence in enumerate(document.sentences):
        following = document.sentences[index + 1] if index + 1 < len(document.sentences) else None
        frames = [] if not named else sentence.find(FRAMES)
        headed = sentence.part == "root cause" and len(sentence.words) <= _SHORT
        if not (frames or headed):
            continue
        for thing in sentence.find(named):
            if headed or any(_near(sentence, frame, thing) for frame in frames):
                stance = stance_of(sentence, (thing,), following)
                found.append(Mention(sentence, thing, thing, stance, loose=True))
    return found


def _near(sentence: Sentence, frame: Span, thing: Span) -> bool:
    gap = (frame.end, thing.start) if frame.end <= thing.start else (thing.end, frame.start)
    words = sentence.line.words[gap[0] : gap[1]]
    return len(words) <= _FRAME_REACH and not any(word in CONTRASTS for word in words)
