"""Headings and labels of a report: which of the four parts a line announces."""

import re

from grader.score.part_words import ARTICLES, HEADINGS, LABELS, QUESTION_WORDS, Part
from grader.score.phrases import Line
from grader.score.words import words_of

BULLET = re.compile(r"\s*(?:[-*+\u2022]|\d{1,2}[.)])\s+(?=\S)")
# "Root cause: ...", with or without bold; a label has at most 40 characters. Spaces are taken and not given back:
# a line of one word and 2,000 spaces would take seconds.
_LABEL = re.compile(
    r"\s*+(?:[*_]{1,3})?([A-Za-z][A-Za-z ,/&'()-]{0,38}?)\s*+(?:[*_]{1,3}+\s*+)?+"
    r"(?:\??[:\u2013\u2014]|-{1,2}(?=\s)|[-=]>)\s*(?:[*_]{1,3})?(?=\s|$)"
)
# "**Root cause.** The rate ...": bold words, with a full stop or nothing.
_BOLD_LABEL = re.compile(r"\s*+(?:\*\*|__)([A-Za-z][A-Za-z ,/&'()-]{1,38})[.:!?]?(?:\*\*|__)[.:]?(?=\s+\S)")
# "The proof. In the corrected run ...": a paragraph that begins with a heading of up to three words and a full stop.
_STOPPED_LABEL = re.compile(r"\s*+([A-Z][a-z]+(?: [a-z-]+){0,2})[.?]\s+(?=\S)")
BOLD_LINE = re.compile(r"\s*+(?:\*\*|__)([^*_]{2,40})(?:\*\*|__)\s*+(?::\s*+)?+$")
# "[fix] lr=0.1"
_BRACKETED = re.compile(r"\s*+\[([A-Za-z][A-Za-z ]{0,29})\]:?\s+(?=\S)")
_ADVERBS = ("now", "after", "afterwards", "then", "before", "what", "because")
_LONG_LABEL, _SHORT_LABEL = 6, 3  # words of "What I did about it:", and of any other label


def line_of(text: str) -> Line:
    """Return the words of a text, ready to be searched."""
    return Line(tuple(word.text for word in words_of(text)))


def part_of_heading(text: str) -> Part | None:
    """Return the part of the report that a heading announces, or None."""
    line = line_of(text)
    if (label := " ".join(line.words)) in LABELS and len(label) > 2:
        return LABELS[label]
    found: list[tuple[int, int, Part]] = []
    for order, (part, phrases) in enumerate(HEADINGS.items()):
        found += [(span.start, order, part) for span in line.find(phrases)]
    if "not" in line.words:
        return None
    return min(found)[2] if found else None


def _part_of_whole(text: str) -> Part | None:
    """Return the part that some words announce, if they say nothing else: "The remedy" """
    line = line_of(text)
    own = [at for at, word in enumerate(line.words) if word not in ARTICLES]
    if [line.words[at] for at in own] in ([word] for word in _ADVERBS):  # "Now. Then. After."
        return None
    whole = any(
        all(span.start <= at < span.end for at in own)
        for phrases in HEADINGS.values()
        for span in line.find(phrases)
    )
    return part_of_heading(text) if own and whole else None


def find_label(line: str, *, begins: bool, alone: bool, notes: bool) -> tuple[Part, int] | None:
    """Return the part that a line begins with a label for, and where the label ends.

    `begins` says that a sentence may begin there, `alone` that nothing else stands in the paragraph, and `notes` that
    other lines around it have labels too: then one letter is enough, "F: lr 0.1".
    """
    if alone and len(line.split()) <= _SHORT_LABEL and (part := _part_of_whole(line)) is not None:
        return part, len(line)
    stopped = _STOPPED_LABEL.match(line) if begins else None
    if stopped and (part := _part_of_whole(stopped[1])) is not None:
        return part, stopped.end()
    label = _LABEL.match(line) or _BOLD_LABEL.match(line) or _BRACKETED.match(line)
    if label is None or not (begins or label[1][0].isupper()):
        return None
    words = label[1].lower().split()
    if len(words) > (_LONG_LABEL if words[0] in QUESTION_WORDS else _SHORT_LABEL):
        return None
    part = LABELS.get(label[1].lower()) if notes else None
    part = part or part_of_heading(label[1])
    return None if part is None else (part, label.end())


def labelled_lines(lines: list[str]) -> frozenset[int]:
    """Return the lines of those paragraphs in which two lines or more have labels of different parts."""
    found: set[int] = set()
    block: list[int] = []
    for index, line in enumerate([*lines, ""]):
        if line.strip():
            block.append(index)
            continue
        parts = set()
        for at in block:
            bullet = BULLET.match(lines[at])
            label = find_label(
                lines[at][bullet.end() if bullet else 0 :][:200], begins=True, alone=False, notes=True
            )
            parts |= {label[0]} if label else set()
        if len(parts) > 1:
            found.update(block)
        block = []
    return frozenset(found)
