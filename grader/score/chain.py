"""Whether a report ties the signal, the cause and the fix into one chain."""

from itertools import pairwise

from grader.score.causes import Causes
from grader.score.document import Document
from grader.score.edits import Reasons, cause_with_fix
from grader.score.lexicon import Lexicon
from grader.score.link_words import CONCLUSIONS, CONNECTIVES, OBSERVED, POINTERS
from grader.score.phrases import Span
from grader.score.sentences import Sentence
from grader.score.verdict import Check, full, lost

ID, TITLE, POINTS = "chain", "Signal, cause and fix are linked in one chain", 4.0
HALF = POINTS / 2
_LATER = 3  # sentences: a conclusion as far behind the cause as this may be drawn from it


def judge_chain(document: Document, lexicon: Lexicon, causes: Causes) -> Check:
    """Judge two links of two points each: the signal with the cause, and the cause with the fix.

    A link is a sentence, or two sentences that follow each other. Between signal and cause there must be a word
    that ties them ("because", "so", "which", "leads to"), or the second must begin with one that points back. In
    notes, the order of the clauses and the headings tie: "Cause: rate of 10, step overshoots, loss explodes".
    """
    remedy = (
        "Say in one or two sentences how the cause makes the number that you saw, and in the next what edit"
        f" takes it away. The cause was: {lexicon.says}."
    )
    if not causes.own:
        return lost(ID, TITLE, POINTS, "The cause is not named, so there is nothing to link.", remedy)
    reasons = _reasons(document, lexicon, causes)
    first = _signal_with_cause(document, (*lexicon.signals, *OBSERVED), reasons) or _by_headings(
        document, lexicon, causes
    )
    second = cause_with_fix(document, lexicon, reasons)
    said = [
        f"Signal and cause: {first}." if first else "No sentence ties what was observed to the cause.",
        f"Cause and fix: {second}." if second else "No sentence ties the edit to the cause.",
    ]
    points = HALF * (first is not None) + HALF * (second is not None)
    if points == POINTS:
        return full(ID, TITLE, POINTS, " ".join(said))
    return lost(ID, TITLE, POINTS, " ".join(said), remedy, points=points)


def _reasons(document: Document, lexicon: Lexicon, causes: Causes) -> Reasons:
    """Return, by sentence, the words that tell the cause or what it does."""
    found: Reasons = {}
    for place, sentence in enumerate(document.sentences):
        spans = [m.span for m in causes.own if m.sentence is sentence] + sentence.find(lexicon.mechanism)
        if spans:
            found[place] = spans
    return found


def _signal_with_cause(document: Document, signals: tuple[str, ...], reasons: Reasons) -> str | None:
    sentences = document.sentences
    for place, spans in reasons.items():
        sentence = sentences[place]
        if not _apart(sentence, signals, spans):
            continue
        if sentence.find(CONNECTIVES) or _follows_in_a_clause(sentence, signals, spans):
            return sentence.quoted()
    for place in reasons:
        for first, second in ((place - 1, place), (place, place + 1)):
            other = first if first != place else second
            if first < 0 or second >= len(sentences) or not sentences[other].find(signals):
                continue
            opens = any(span.start == 0 for span in sentences[second].find(POINTERS))
            noted = second == place and sentences[place].part is None and _tell_two_things(reasons[place])
            if opens or noted or sentences[second].find(CONNECTIVES):
                return f"{sentences[first].quoted(100)} and {sentences[second].quoted(100)}"
        for later in sentences[place + 2 : place + 1 + _LATER]:
            same_part = later.part == sentences[place].part and later.part != "symptom"
            if same_part and later.find(signals) and later.find(CONCLUSIONS):
                return f"{sentences[place].quoted(100)} and {later.quoted(100)}"
    return None


def _follows_in_a_clause(sentence: Sentence, signals: tuple[str, ...], reasons: list[Span]) -> bool:
    """Say whether a signal follows in a later clause: "every step overshoots, loss blows up"."""
    if sentence.part not in ("root cause", None):
        return False
    first = min(sentence.clauses[span.end - 1] for span in reasons)
    return any(
        sentence.clauses[span.start] > first and not any(span.overlaps(reason) for reason in reasons)
        for span in sentence.find(signals)
    )


def _tell_two_things(reasons: list[Span]) -> bool:
    """Say whether a cause and what it does are told, in a note: "misses model.eval(): dropout stays on"."""
    ordered = sorted(reasons)
    return any(not first.overlaps(second) for first, second in pairwise(ordered))


def _by_headings(document: Document, lexicon: Lexicon, causes: Causes) -> str | None:
    """Return the note under the heading of the cause that also says what the cause does, in other words.

    What was seen must have a heading as well: these two headings say that one is the cause of the other.
    """
    seen = any(s.part == "symptom" and s.find(lexicon.signals) for s in document.sentences)
    if not (seen or (document.headed.get("symptom") and document.code)):
        return None
    named = [m for m in causes.own if m.sentence.part == "root cause"]
    for sentence in document.sentences:
        if not named or sentence.part != "root cause":
            continue
        if _apart(sentence, lexicon.mechanism, [named[0].span] if named[0].sentence is sentence else []):
            return f"{named[0].sentence.quoted(100)} and {sentence.quoted(100)}, under their headings"
    return None


def _apart(sentence: Sentence, phrases: tuple[str, ...], taken: list[Span]) -> bool:
    """Say whether a phrase stands there in other words than those taken already."""
    return any(not any(span.overlaps(other) for other in taken) for span in sentence.find(phrases))
