"""A report's text as a person reads it: sentences in order, the part each belongs to, and what is no prose."""

import re
from dataclasses import dataclass, field
from functools import cached_property

from grader.score.headings import BOLD_LINE, BULLET, find_label, labelled_lines, line_of, part_of_heading
from grader.score.part_words import Part
from grader.score.phrases import Line, beginnings
from grader.score.plain_text import plain_text
from grader.score.sentences import SENTENCE_LIMIT, Sentence, make_sentence, split_sentences
from grader.score.words import words_of

# 500 words are about 3,500 characters; what lies beyond is not read.
TEXT_LIMIT = 20_000

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s+(.*))?$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{3,})\s*$")


@dataclass(frozen=True, eq=False)
class Document:
    """The text under the front matter.

    `code` holds the lines of code blocks and tables; `headed` the words (code included) under a heading of each part.
    """

    sentences: tuple[Sentence, ...]
    code: tuple[str, ...]
    headed: dict[Part, int]

    @property
    def word_count(self) -> int:
        """The number of words in sentences."""
        return sum(len(sentence.words) for sentence in self.sentences)

    def may_hold(self, phrases: tuple[str, ...]) -> bool:
        """Say whether a word begins as one of the phrases does: where none does, no sentence holds one of them."""
        return not self._prefixes.isdisjoint(beginnings(phrases))

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset().union(*(sentence.line.prefixes for sentence in self.sentences))


@dataclass
class _Reader:
    """What has been read so far."""

    part: Part | None = None
    sentences: list[Sentence] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    headed: dict[Part, int] = field(default_factory=dict)
    paragraph: list[str] = field(default_factory=list)
    section: Line | None = None
    list_lead: Line | None = None

    def end_paragraph(self) -> None:
        text = plain_text(" ".join(self.paragraph))
        self.paragraph.clear()
        for sentence in split_sentences(text):
            words = words_of(sentence)
            if words:
                self.count(len(words))
                lead = self.list_lead or self.section
                self.sentences.append(make_sentence(sentence, words, self.part, lead))

    def begin(self, part: Part | None, heading: str = "") -> None:
        """Begin a section: one of the four parts, or one with a heading of its own."""
        self.end_paragraph()
        self.part = part
        self.section = None if part or not heading else line_of(heading)
        self.list_lead = None

    def begin_item(self) -> None:
        """Begin an item of a list; a line that ends with a colon introduces all of them."""
        self.end_paragraph()
        last = self.sentences[-1] if self.sentences else None
        if self.list_lead is None and last is not None and last.text.endswith(":"):
            self.list_lead = last.line

    def count(self, words: int) -> None:
        if self.part is not None:
            self.headed[self.part] = self.headed.get(self.part, 0) + words


def read_document(body: str) -> Document:
    """Return what a report's body says. It reads any text, in time proportional to its length."""
    reader = _Reader()
    lines = body[:TEXT_LIMIT].replace("\r\n", "\n").split("\n")
    fence = ""
    notes = labelled_lines(lines)
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            else:
                _take_code(reader, line)
        elif mark:
            reader.end_paragraph()
            fence = mark[1]
        elif line.lstrip().startswith("|"):
            reader.end_paragraph()
            _take_code(reader, line)
        else:
            below = lines[index + 1] if index + 1 < len(lines) else ""
            _take_line(reader, line, below, notes=index in notes)
    reader.end_paragraph()
    return Document(tuple(reader.sentences), tuple(reader.code), reader.headed)


def read_lines(lines: tuple[str, ...]) -> tuple[Sentence, ...]:
    """Return lines of code as sentences, for the numbers in them."""
    pairs = [(line.strip(), words_of(line.strip())) for line in lines]
    return tuple(make_sentence(text, words, None, None) for text, words in pairs if words)


def _take_code(reader: _Reader, line: str) -> None:
    if line.strip():
        reader.code.append(line[:SENTENCE_LIMIT])
        reader.count(len(line.split()))


def _take_line(reader: _Reader, line: str, below: str, *, notes: bool) -> None:
    line = line[: TEXT_LIMIT // 4]
    heading = _HEADING.match(line) or BOLD_LINE.match(line)
    if (
        heading is None
        and line.strip()
        and not reader.paragraph
        and len(line) < 60
        and _UNDERLINE.match(below)
    ):
        heading = re.match(r"(.*)", line)
    if heading is not None:
        part = part_of_heading(heading[1] or "")
        level_one = part is not None or line.lstrip().startswith("#")
        reader.begin(part if level_one else reader.part, heading[1] or "")
        return
    if not line.strip() or _UNDERLINE.match(line):
        reader.end_paragraph()
        return
    bullet = BULLET.match(line)
    if bullet:
        reader.begin_item()
        line = line[bullet.end() :]
    elif not reader.paragraph:
        reader.list_lead = None
    # In the middle of a sentence "cause:" may be a word that a line happens to begin with.
    begins = notes or not reader.paragraph or reader.paragraph[-1].endswith((".", "!", "?", ":", ";"))
    label = find_label(line, begins=begins, alone=not reader.paragraph and not below.strip(), notes=notes)
    if label is not None:
        reader.begin(label[0])
        line = line[label[1] :]
    reader.paragraph.append(line.strip())
