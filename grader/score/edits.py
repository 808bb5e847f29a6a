"""Whether a report ties its edit to the cause: the sentence or two that say what was done, and to what."""

from grader.score.document import Document
from grader.score.lexicon import Lexicon
from grader.score.link_words import CONNECTIVES, EDITS, EDITS_OF_IT, FIX_NOUNS, POINTERS
from grader.score.phrases import Span
from grader.score.sentences import Sentence

Reasons = dict[int, list[Span]]
_NOTE = 3  # words: under the heading "Fix", a note as short as this is the edit: "lr 0.1"


def cause_with_fix(document: Document, lexicon: Lexicon, reasons: Reasons) -> str | None:
    """Return the sentences that tie an edit to the cause, or None.

    `reasons` are, by sentence, the words that tell the cause or what it does.
    """
    sentences = document.sentences
    headed = any(sentence.part == "fix" for sentence in sentences)
    things = tuple(phrase for cause in lexicon.causes for phrase in cause.thing)
    opposite = tuple(phrase for cause in lexicon.causes for phrase in cause.opposite)
    first = min(reasons, default=len(sentences))
    for place, sentence in enumerate(sentences):
        # Where the fix has a heading, "it is not averaged" above it is no edit.
        if headed and sentence.part in ("symptom", "root cause"):
            continue
        told = reasons.get(place, [])
        found = sentence.find(lexicon.fix)
        edits = [e for e in found if sentence.part == "fix" or not any(span.holds(e) for span in told)]
        if _edits_thing(sentence, things, opposite) or _is_a_note(sentence, bool(edits), things):
            return sentence.quoted()
        if first < place and _does(sentence, found):
            return sentence.quoted()
        near = [other for other in _neighbours(sentences, place) if other in reasons]
        if near and (edits or _edits_it(sentence)):
            before, after = sorted((place, near[0]))
            return f"{sentences[before].quoted(100)} and {sentences[after].quoted(100)}"
        if edits and (told or _is_explained(sentence, edits, things, lexicon.signals)):
            return sentence.quoted()
    return None


def _does(sentence: Sentence, edits: list[Span]) -> bool:
    """Say whether a person makes one of the recipe's edits, behind a cause told before: "So I added the call." """
    if sentence.part == "fix":
        return bool(edits)
    doers = sentence.find(("i", "we", *FIX_NOUNS))
    # Notes leave out who did it: "removed the layer, done".
    return sentence.part is None and any(
        edit.start == 0 or any(who.end <= edit.start for who in doers) for edit in edits
    )


def _is_explained(
    sentence: Sentence, edits: list[Span], things: tuple[str, ...], signals: tuple[str, ...]
) -> bool:
    """Say whether the same sentence names the thing that is broken, or says what the edit does to a signal."""
    if sentence.part in ("fix", None) and sentence.find(things):
        return True
    apart = any(not any(span.overlaps(edit) for edit in edits) for span in sentence.find(signals))
    return apart and bool(sentence.find(CONNECTIVES))


def _is_a_note(sentence: Sentence, has_edit: bool, things: tuple[str, ...]) -> bool:
    """Say whether it is an edit in a word or two, under its heading: "0.1", or as a patch: "- nn.Softmax()"."""
    if sentence.part != "fix":
        return False
    patch = sentence.text[:1] in ("-", "+") and bool(sentence.find(things))
    number = any(word[0].isdigit() for word in sentence.line.words)
    return patch or (len(sentence.words) <= _NOTE and (has_edit or number))


def _edits_thing(sentence: Sentence, things: tuple[str, ...], opposite: tuple[str, ...]) -> bool:
    """Say whether something is done to the thing that is broken, in whatever words, and nothing to the contrary.

    Without a heading, only a person does something ("I quit the softmax"), or it is called the solution.
    """
    doing = sentence.find(EDITS)
    if sentence.part != "fix":
        persons = sentence.find(("i", "we", *FIX_NOUNS))
        doing = [edit for edit in doing if edit.start == 0 or any(who.start <= edit.start for who in persons)]
    if sentence.part not in ("fix", None) or sentence.find(opposite):
        return False
    return any(not edit.holds(thing) for edit in doing for thing in sentence.find(things))


def _edits_it(sentence: Sentence) -> bool:
    """Say whether something definite is done to what was just told of: "added it", "So I took this out." """
    persons = sentence.find(("i", "we"))
    return sentence.part in ("fix", None) and any(
        edit.start == 0 or sentence.part == "fix" or any(who.start <= edit.start for who in persons)
        for edit in sentence.find(EDITS_OF_IT)
    )


def _neighbours(sentences: tuple[Sentence, ...], place: int) -> tuple[int, ...]:
    """Return the sentences beside one; beyond one before it that points back ("So it is lower."), the next too."""
    back = sentences[place - 1] if place else None
    points = back is not None and any(span.start == 0 for span in back.find(POINTERS))
    return (place - 1, place + 1, place - 2) if points else (place - 1, place + 1)
