"""Where a text names a cause: the thing and, close to it, what is wrong with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from grader.score.document import Document
from grader.score.enumerations import is_enumeration
from grader.score.lexicon import Cause
from grader.score.link_words import PRONOUNS
from grader.score.phrases import Span
from grader.score.sentences import Sentence
from grader.score.stance import Stance, stance_of
from grader.score.stance_words import CONTRASTS, NEGATORS
from grader.score.wording import ABSENT, BETWEEN, DEGREES, FRAMES, FUNCTION_WORDS, SO_BETWEEN, SUBJECTS

# Words between the thing and its fault, in the order "the rate is too large" and "too large a rate".
_FAULT_AFTER, _FAULT_BEFORE = 9, 4
_PAIRS = 16  # in one sentence; a hostile one has hundreds
_FRAME_REACH = 5  # words between "the root cause is" and the thing
_SHORT = 9  # words: under the heading "Root cause", a sentence as short as this names it and no more


@dataclass(frozen=True, eq=False)
class Mention:
    """A cause named in a sentence, and how the sentence holds it.

    `loose`: named as the cause, fault untold. `effect`: it may as well be what another cause does. `contrary`: it says
    the opposite of the cause with its words, "there is no softmax".
    """

    sentence: Sentence
    span: Span
    thing: Span
    stance: Stance
    loose: bool = False
    effect: bool = False
    contrary: bool = False

    @property
    def quote(self) -> str:
        """The words of the mention, as written."""
        return f'"{self.sentence.at(self.span)}"'


def find_mentions(
    document: Document, causes: Iterable[Cause], *, across: bool = False, accusing: bool = False
) -> list[Mention]:
    """Return where a document names one of the causes, in order.

    With `across`, a fault may also stand at the head of the next sentence, where that one begins with a word
    that points back: "The rate is 10. That is far too large." With `accusing`, "the network makes too large
    steps" says nothing of the size of the network.
    """
    found = []
    causes = [cause for cause in causes if document.may_hold(cause.thing)]
    for index, sentence in enumerate(document.sentences if causes else ()):
        following = document.sentences[index + 1] if index + 1 < len(document.sentences) else None
        pairs = list(
            islice(chain.from_iterable(_pairs(sentence, cause, accusing) for cause in causes), _PAIRS)
        )
        starts = sorted(min(thing.start, fault.start) for thing, fault, _ in pairs)
        for thing, fault, cause in pairs:
            span = Span(min(thing.start, fault.start), max(thing.end, fault.end))
            limit = next((start for start in starts if start >= span.end), None)
            # "The rate is 10" and right after it "times too small".
            opposed = any(
                span.start < other.end and other.start <= span.end + 1
                for other in sentence.find(cause.opposite)
            )
            stance = "ruled out" if opposed else stance_of(sentence, (thing, fault), following, limit)
            found.append(Mention(sentence, span, thing, stance, effect=cause.effect, contrary=opposed))
        if across and not pairs and following is not None:
            found += [m for cause in causes for m in _across(sentence, following, cause)]
    return found


def _pairs(sentence: Sentence, cause: Cause, accusing: bool) -> Iterator[tuple[Span, Span, Cause]]:
    things = sentence.find(cause.thing)
    if not cause.faults:
        yield from ((thing, thing, cause) for thing in things)
    if not cause.faults or not things:
        return
    faults = sentence.find(cause.faults)
    if accusing:
        faults = [fault for fault in faults if not _describes_what_follows(sentence, fault, things)]
    # "The rate is fine, the loss too large": the fault belongs to the nearest noun.
    subjects = [s for s in sentence.find(SUBJECTS) if not any(s.overlaps(thing) for thing in things)]
    words = sentence.line.words
    for thing in things:
        for fault in faults:
            if thing.overlaps(fault):
                yield thing, fault, cause
            elif _belong(sentence, thing, fault, subjects, accusing):
                gap = _gap(thing, fault)
                # "No missing zero_grad": what is denied is that it is missing.
                denied = words[fault.start] in NEGATORS and any(gap.holds(other) for other in faults)
                if not denied:
                    yield thing, fault, cause


def _gap(thing: Span, fault: Span) -> Span:
    return Span(thing.end, fault.start) if fault.start >= thing.end else Span(fault.end, thing.start)


def _belong(sentence: Sentence, thing: Span, fault: Span, subjects: list[Span], accusing: bool) -> bool:
    after = fault.start >= thing.end
    gap = _gap(thing, fault)
    if gap.end - gap.start > (_FAULT_AFTER if after else _FAULT_BEFORE):
        return False
    if not after and sentence.clauses[fault.start] != sentence.clauses[thing.start]:
        return False
    between = sentence.line.words[gap.start : gap.end]
    # "Too large for this network" is not said of the network, "too high would show at step 1" not of the step.
    # But "what is missing is the scaling" is said of it.
    cleft = sentence.line.words[max(0, fault.start - 2) : fault.start] in (("what", "is"), ("what", "was"))
    if not after and not cleft and not BETWEEN.isdisjoint(between):
        return False
    if any(word in CONTRASTS for word in between):
        return False
    # "There is dropout, so the marks are too low" says nothing of the strength of dropout.
    if accusing and sentence.line.words[fault.start] in DEGREES and not SO_BETWEEN.isdisjoint(between):
        return False
    # "The loss is summed the gradient is long" says it of the loss.
    if not accusing and not after and any(subject.end == fault.start for subject in subjects):
        return False
    # "The gradients explode since there is no clipping, they are too large" tells of something else in between.
    cut = sentence.clauses[fault.start] != sentence.clauses[thing.start]
    if after and cut and not {"because", "since", "as"}.isdisjoint(between):
        return False
    return not any(gap.start <= subject.start < gap.end for subject in subjects)


def _describes_what_follows(sentence: Sentence, fault: Span, things: list[Span]) -> bool:
    """Say whether a fault such as "too large" is said of the noun right after it, and that is none of the things."""
    words = sentence.line.words
    if (
        words[fault.start] not in DEGREES
        or fault.end >= len(words)
        or sentence.between(fault.end - 1).strip()
    ):
        return False
    noun = words[fault.end]
    if noun in FUNCTION_WORDS or noun in ("value", "number", "one", "setting"):
        return False
    return not any(thing.start == fault.end for thing in things)


def _across(sentence: Sentence, following: Sentence, cause: Cause) -> list[Mention]:
    things = sentence.find(cause.thing)
    missing = "missing" in cause.fault and any(span.start == 0 for span in following.find(ABSENT))
    if things and missing:  # "Normally a scaler does this. There is none."
        return [Mention(sentence, things[-1], things[-1], "offered")]
    if not cause.faults or not any(span.start == 0 for span in following.find(PRONOUNS)):
        return []
    faults = [span for span in following.find(cause.faults) if span.start <= _FAULT_AFTER]
    if not things or not faults:
        return []
    last = things[-1]
    if any(s.start >= last.end for s in sentence.find(SUBJECTS)):
        return []
    negated = stance_of(following, (faults[0],), None) == "ruled out"
    stance = "ruled out" if negated else stance_of(sentence, (last,), None)
    return [Mention(sentence, last, last, stance)]


def find_loose(document: Document, causes: Iterable[Cause], *, headed: bool = True) -> list[Mention]:
    """Return where a sentence presents the thing as the cause without a word about what is wrong with it.

    With `headed`, a short sentence under the heading "Root cause" presents what it names; an enumeration there
    does in any case.
    """
    found = []
    named = tuple(phrase for cause in causes for phrase in cause.named)
    effects = tuple(phrase for cause in causes if cause.effect for phrase in cause.named)
    if not document.may_hold(named):
        return []
    for index, sentence in enumerate(document.sentences):
        following = document.sentences[index + 1] if index + 1 < len(document.sentences) else None
        frames = sentence.find(FRAMES)
        short = sentence.part == "root cause" and (
            (headed and len(sentence.words) <= _SHORT) or is_enumeration(sentence)
        )
        if not (frames or short):
            continue
        for thing in sentence.find(named):
            if _is_an_argument(sentence, thing):
                continue
            if short or any(_near(sentence, frame, thing) for frame in frames):
                stance = stance_of(sentence, (thing,), following)
                effect = thing in sentence.find(effects)
                found.append(Mention(sentence, thing, thing, stance, loose=True, effect=effect))
    return found


def _is_an_argument(sentence: Sentence, thing: Span) -> bool:
    """Say whether it is an argument in a line of code: "SGD(model.parameters(), lr=10.0, momentum=0.9)"."""
    if not 0 < thing.start <= thing.end < len(sentence.words):
        return False
    return "," in sentence.between(thing.start - 1) and sentence.between(thing.end - 1).strip() == "="


def _near(sentence: Sentence, frame: Span, thing: Span) -> bool:
    gap = (frame.end, thing.start) if frame.end <= thing.start else (thing.end, frame.start)
    words = sentence.line.words[gap[0] : gap[1]]
    return len(words) <= _FRAME_REACH and not any(word in CONTRASTS for word in words)
