"""Whether a report ties the signal, the cause and the fix into one chain."""

from grader.rubric.causes import Causes
from grader.rubric.document import Document
from grader.rubric.lexicon import Lexicon
from grader.rubric.mentions import Mention
from grader.rubric.phrases import Span
from grader.rubric.sentences import Sentence
from grader.rubric.wording import CONNECTIVES, EDITS, FIX_NOUNS, POINTERS
from grader.score import Check, full, lost

ID, TITLE, POINTS = "chain", "Signal, cause and fix are linked in one chain", 4.0
HALF = POINTS / 2


def judge_chain(document: Document, lexicon: Lexicon, causes: Causes) -> Check:
    """Judge two links of two points each: the signal with the cause, and the cause with the fix.

    A link is a sentence, or two sentences that follow each other. Between signal and cause there must be a word
    that ties them ("because", "so", "which", "leads to"), or the second must begin with one that points back.
    """
    remedy = (
        "Say in one or two sentences how the cause makes the number that you saw, and in the next what edit"
        f" takes it away. The cause was: {lexicon.says}."
    )
    if not causes.own:
        return lost(ID, TITLE, POINTS, "The cause is not named, so there is nothing to link.", remedy)
    reasons = _reasons(document, lexicon, causes)
    first = _signal_with_cause(document, lexicon, reasons)
    second = _cause_with_fix(document, lexicon, reasons)
    said = [
        f"Signal and cause: {first}." if first else "No sentence ties what was observed to the cause.",
        f"Cause and fix: {second}." if second else "No sentence ties the edit to the cause.",
    ]
    points = HALF * (first is not None) + HALF * (second is not None)
    if points == POINTS:
        return full(ID, TITLE, POINTS, " ".join(said))
    return lost(ID, TITLE, POINTS, " ".join(said), remedy, points=points)


def _reasons(document: Document, lexicon: Lexicon, causes: Causes) -> dict[int, list[Span]]:
    """Return, by sentence, the words that tell the cause or what it does."""
    found: dict[int, list[Span]] = {}
    for place, sentence in enumerate(document.sentences):
        spans = [m.span for m in causes.own if _is_in(m, sentence)] + sentence.find(lexicon.mechanism)
        if spans:
            found[place] = spans
    return found


def _is_in(mention: Mention, sentence: Sentence) -> bool:
    return mention.sentence is sentence


def _signal_with_cause(document: Document, lexicon: Lexicon, reasons: dict[int, list[Span]]) -> str | None:
    sentences = document.sentences
    for place, spans in reasons.items():
        if _apart(sentences[place], lexicon.signals, spans) and sentences[place].find(CONNECTIVES):
            return sentences[place].quoted()
    for place in reasons:
        for first, second in ((place - 1, place), (place, place + 1)):
            other = first if first != place else second
            if first < 0 or second >= len(sentences) or not sentences[other].find(lexicon.signals):
                continue
            opens = any(span.start == 0 for span in sentences[second].find(POINTERS))
            if opens or sentences[second].find(CONNECTIVES):
                return f"{sentences[first].quoted(100)} and {sentences[second].quoted(100)}"
    return None


def _cause_with_fix(document: Document, lexicon: Lexicon, reasons: dict[int, list[Span]]) -> str | None:
    sentences = document.sentences
    headed = any(sentence.part == "fix" for sentence in sentences)
    things = tuple(phrase for cause in lexicon.causes for phrase in cause.thing)
    opposite = tuple(phrase for cause in lexicon.causes for phrase in cause.opposite)
    for place, sentence in enumerate(sentences):
        # Where the fix has a heading, "it is not averaged" above it is no edit.
        if headed and sentence.part in ("symptom", "root cause"):
            continue
        told = reasons.get(place, [])
        edits = [edit for edit in sentence.find(lexicon.fix) if not any(span.holds(edit) for span in told)]
        if not edits and _edits_thing(sentence, things, opposite):
            return sentence.quoted()
        if not edits:
            continue
        if told or (sentence.part in ("fix", None) and sentence.find(things)):
            return sentence.quoted()
        for other in _neighbours(sentences, place):
            if other in reasons:
                first, second = sorted((place, other))
                return f"{sentences[first].quoted(100)} and {sentences[second].quoted(100)}"
        if _apart(sentence, lexicon.signals, edits) and sentence.find(CONNECTIVES):
            return sentence.quoted()
    return None


def _edits_thing(sentence: Sentence, things: tuple[str, ...], opposite: tuple[str, ...]) -> bool:
    """Say whether something is done to the thing that is broken, in whatever words, and nothing to the contrary.

    Without a heading, only a person does something ("I quit the softmax"), or it is called the solution.
    """
    doing = sentence.find(EDITS)
    if sentence.part != "fix":
        persons = sentence.find(("i", "we", *FIX_NOUNS))
        doing = [edit for edit in doing if any(who.start <= edit.start for who in persons)]
    if sentence.part not in ("fix", None) or sentence.find(opposite):
        return False
    return any(not edit.holds(thing) for edit in doing for thing in sentence.find(things))


def _neighbours(sentences: tuple[Sentence, ...], place: int) -> tuple[int, ...]:
    """Return the sentences beside one; beyond one before it that points back ("So it is lower."), the next too."""
    back = sentences[place - 1] if place else None
    points = back is not None and any(span.start == 0 for span in back.find(POINTERS))
    return (place - 1, place + 1, place - 2) if points else (place - 1, place + 1)


def _apart(sentence: Sentence, phrases: tuple[str, ...], taken: list[Span]) -> bool:
    """Say whether a phrase stands there in other words than those taken already."""
    return any(not any(span.overlaps(other) for other in taken) for span in sentence.find(phrases))
