"""Whether a report keeps to its 500 words and has its four parts."""

from collections.abc import Sequence

from grader.score.document import Document
from grader.score.logged import LoggedValues
from grader.score.mentions import Mention
from grader.score.part_words import CUES, Part
from grader.score.sentences import Sentence
from grader.score.stated import stated_numbers
from grader.score.verdict import Check, full, lost
from grader.score.written_numbers import digits_of
from harness.run.metrics_log import Record
from harness.submission.report_body import WORD_LIMIT

ID, TITLE, POINTS = "parts", "At most 500 words, in four parts: symptom, root cause, fix, verification", 2.0
PARTS: tuple[Part, ...] = ("symptom", "root cause", "fix", "verification")
_ENOUGH = 2  # words under a heading; an edit may be told in one ("0.1")
_PRECISE = 3  # digits of a number that only the fixed run has
_REMEDY = "Write at most 500 words in four parts: symptom, root cause, fix, verification."


def judge_parts(
    document: Document,
    words: int,
    fix: tuple[str, ...],
    named: tuple[Mention, ...],
    logs: tuple[Sequence[Record], Sequence[Record]],
) -> Check:
    """Judge length and parts; a missing part costs a quarter.

    `fix` are the recipe's words for its edit, `named` the causes that the text offers, right or wrong, `logs` those
    of the broken and the fixed run: who cites a figure of the fixed run has verified the fix.
    """
    if words > WORD_LIMIT:
        reason = f"The report has {words} words, and {WORD_LIMIT} are allowed."
        return lost(ID, TITLE, POINTS, reason, f"Leave out {words - WORD_LIMIT} words.")
    found = {part: where for part in PARTS if (where := _where(document, part, fix, named)) is not None}
    if "verification" not in found and (cited := _figure_of_the_fixed_run(document, logs)):
        found["verification"] = cited
    said = "; ".join(f"{part}: {where}" for part, where in found.items())
    missing = [part for part in PARTS if part not in found]
    if not missing:
        return full(ID, TITLE, POINTS, f"{words} words, and all four parts are there ({said}).")
    reason = f"{words} words; missing: {', '.join(missing)}" + (f"; found: {said}." if said else ".")
    return lost(ID, TITLE, POINTS, reason, _REMEDY, points=POINTS * len(found) / len(PARTS))


def _where(document: Document, part: Part, fix: tuple[str, ...], named: tuple[Mention, ...]) -> str | None:
    """Return what shows that the part is there, or None."""
    if document.headed.get(part, 0) >= (1 if part == "fix" else _ENOUGH):
        return f"{document.headed[part]} words under its heading"
    if part == "root cause" and named:
        return f"{named[0].quote} in {named[0].sentence.quoted(80)}"
    phrases = (*CUES[part], *fix) if part == "fix" else CUES[part]
    for sentence in _in_order(document, part):
        if len(sentence.words) >= _ENOUGH and (spans := sentence.find(phrases)):
            return f'"{sentence.at(spans[0])}" in {sentence.quoted(80)}'
    return None


def _in_order(document: Document, part: Part) -> list[Sentence]:
    """Return the sentences that may hold a part. One under another part's heading is that other part's."""
    free = [s for s in document.sentences if s.part is None]
    # What was verified is told at the end, what was seen at the beginning.
    return free[::-1] if part == "verification" else free


def _figure_of_the_fixed_run(
    document: Document, logs: tuple[Sequence[Record], Sequence[Record]]
) -> str | None:
    """Return a sentence, behind what was seen and outside the cause, with a number that only the fixed run has."""
    broken, fixed = LoggedValues(logs[0]), LoggedValues(logs[1])
    for sentence in document.sentences[1:]:
        if sentence.part in ("symptom", "root cause"):
            continue
        for number in stated_numbers(sentence):
            precise = [w for w in number.written if digits_of(w) >= _PRECISE]
            signals = number.signals or tuple(fixed.signals)
            if any(fixed.hold(signals, w) and not broken.hold(signals, w) for w in precise):
                return f"{number.quote} in {sentence.quoted(80)}, which only the fixed run has"
    return None
