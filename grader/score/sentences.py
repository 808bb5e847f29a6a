"""A sentence: its words, their clauses, where it stands, and how it is quoted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.score.part_words import Part
from grader.score.phrases import Line, Span
from grader.score.spelling import meant_words
from grader.score.stance_words import CONTRASTS
from grader.score.words import Word

SENTENCE_LIMIT = 1_000  # characters; a longer one is read in pieces

# From the first mark of a run: were each a beginning, 20,000 of them would take seconds.
_SENTENCE_END = re.compile("(?<![.!?])[.!?]++[\"')\\]\u201d]*+(?=\\s|$)|;(?=\\s|$)|[\u3002\uff01\uff1f]")
_ABBREVIATIONS = ("e.g.", "i.e.", "vs.", "approx.", "ca.", "cf.", "fig.", "eq.", "resp.", "incl.", "w.r.t.")
_CUT = re.compile(r"[;:()\u2013\u2014]")
_BREAK = re.compile(r"[,;:()\u2013\u2014]|\s-\s")


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence: its text on one line, its words, the clause of each, and the part of the report it is in.

    `lead` is what introduces it: the heading of a section that is none of the four parts, or the line with a
    colon above a list.
    """

    text: str
    words: tuple[Word, ...]
    part: Part | None
    line: Line
    clauses: tuple[int, ...]
    lead: Line | None = None

    def find(self, phrases: tuple[str, ...]) -> list[Span]:
        """Return where phrases stand in the words."""
        return self.line.find(phrases)

    def is_cut_after(self, index: int) -> bool:
        """Say whether more than a comma stands between a word and the next."""
        return bool(_CUT.search(self.between(index)))

    def between(self, index: int) -> str:
        """Return what stands between a word and the next: spaces, commas, marks."""
        return self.text[self.words[index].end : self.words[index + 1].start]

    @property
    def is_question(self) -> bool:
        """Whether it asks."""
        return self.text.rstrip("\"')\u201d ").endswith("?")

    def at(self, span: Span) -> str:
        """Return the text of some words as it was written, without what could upset a terminal."""
        return printable(self.text[self.words[span.start].start : self.words[span.end - 1].end])

    def quoted(self, limit: int = 160) -> str:
        """Return the sentence in quotation marks, shortened to `limit` characters."""
        text = printable(self.text)
        return f'"{text if len(text) <= limit else text[: limit - 1].rstrip() + "…"}"'


def printable(text: str) -> str:
    """Return a text on one line, with nothing in it but printable characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph; a semicolon ends one, a point in a number or in `e.g.` does not."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        head = text[max(start, match.end() - 12) : match.end()].lower()
        if head.endswith(_ABBREVIATIONS) and match[0] == ".":
            continue
        yield from _pieces(text[start : match.end()].strip())
        start = match.end()
    yield from _pieces(text[start:].strip())


def _pieces(sentence: str) -> Iterator[str]:
    for at in range(0, len(sentence), SENTENCE_LIMIT):
        yield sentence[at : at + SENTENCE_LIMIT]


def make_sentence(text: str, words: tuple[Word, ...], part: Part | None, lead: Line | None) -> Sentence:
    """Return a sentence; `lead` is what introduces it, if anything does."""
    readings = meant_words(tuple(word.text for word in words))
    words = tuple(Word(text, words[at].start, words[at].end) for at, text in readings)
    texts = tuple(word.text for word in words)
    clause, clauses = 0, []
    for number, word in enumerate(words):
        between = text[words[number - 1].end : word.start] if number else ""
        if number and (_BREAK.search(between) or word.text in CONTRASTS):
            clause += 1
        clauses.append(clause)
    return Sentence(text, words, part, Line(texts), tuple(clauses), lead)
