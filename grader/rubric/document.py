"""A report's text as a person reads it: sentences in order, the part each belongs to, and what is no prose."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.rubric.phrases import Line, Span
from grader.rubric.wording import CONTRASTS, HEADINGS, Part
from grader.rubric.words import Word, words_of

# 500 words are about 3,500 characters; what lies beyond is not read.
TEXT_LIMIT = 20_000
SENTENCE_LIMIT = 1_000

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s+(.*))?$")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\d{1,2}[.)])\s+(?=\S)")
# "Root cause: ...", with or without bold; a label has at most 40 characters.
_LABEL = re.compile(
    r"\s*(?:[*_]{1,3})?([A-Za-z][A-Za-z ,/&'()-]{1,38}?)\s*(?:[*_]{1,3})?\s*[:\u2013\u2014]\s*(?:[*_]{1,3})?(?=\s|$)"
)
_BOLD_LINE = re.compile(r"\s*(?:\*\*|__)([^*_]{2,40})(?:\*\*|__)\s*:?\s*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-{3,})\s*$")
_SENTENCE_END = re.compile("[.!?]+[\"')\\]\u201d]*(?=\\s|$)|;(?=\\s|$)|[\u3002\uff01\uff1f]")
_ABBREVIATIONS = ("e.g.", "i.e.", "vs.", "approx.", "ca.", "cf.", "fig.", "eq.", "resp.", "incl.")
_LINK = re.compile(r"(!?)\[([^\[\]\n]{0,200})\]\([^()\s]{0,2000}\)")
_ADDRESS = re.compile(r"\b(?:https?://|data:)[^\s)>]+")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|<!--[^<>]{0,500}-->")
_MARKS = re.compile(r"[`*]+|(?<![^\W_])_+|_+(?![^\W_])|^\s*>+", re.MULTILINE)
_CUT = re.compile(r"[;:()\u2013\u2014]")
_BREAK = re.compile(r"[,;:()\u2013\u2014]|\s-\s")


_RAISED = re.compile("[\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}")
_LOWERED = str.maketrans("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789")
_POWER = re.compile(
    r"(?<![\d.])(?:(\d{1,20}(?:\.\d{1,20})?)\s?[\u00d7x*\u00b7]\s?)?10\^[{(]?([+-]?\d{1,3})[})]?"
)


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence: its text on one line, its words, the clause of each, and the part of the report it is in."""

    index: int
    text: str
    words: tuple[Word, ...]
    part: Part | None
    line: Line
    clauses: tuple[int, ...]

    def find(self, phrases: tuple[str, ...]) -> list[Span]:
        """Return where phrases stand in the words."""
        return self.line.find(phrases)

    def is_cut_after(self, index: int) -> bool:
        """Say whether more than a comma stands between a word and the next."""
        return bool(_CUT.search(self.text[self.words[index].end : self.words[index + 1].start]))

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


def printable(text: str) -> str:
    """Return a text on one line, with nothing in it but printable characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def part_of_heading(text: str) -> Part | None:
    """Return the part of the report that a heading announces, or None."""
    words = words_of(text)
    line = Line(tuple(word.text for word in words))
    found: list[tuple[int, int, Part]] = []
    for order, (part, phrases) in enumerate(HEADINGS.items()):
        found += [(span.start, order, part) for span in line.find(phrases)]
    if "not" in line.words:
        return None
    return min(found)[2] if found else None


@dataclass
class _Reader:
    """What has been read so far."""

    part: Part | None = None
    sentences: list[Sentence] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    headed: dict[Part, int] = field(default_factory=dict)
    paragraph: list[str] = field(default_factory=list)

    def end_paragraph(self) -> None:
        text = _plain(" ".join(self.paragraph))
        self.paragraph.clear()
        for sentence in split_sentences(text):
            words = words_of(sentence)
            if words:
                self.count(len(words))
                self.sentences.append(_sentence(len(self.sentences), sentence, words, self.part))

    def begin(self, part: Part | None) -> None:
        self.end_paragraph()
        self.part = part

    def count(self, words: int) -> None:
        if self.part is not None:
            self.headed[self.part] = self.headed.get(self.part, 0) + words


def read_document(body: str) -> Document:
    """Return what a report's body says. It reads any text, in time proportional to its length."""
    reader = _Reader()
    lines = body[:TEXT_LIMIT].replace("\r\n", "\n").split("\n")
    fence = ""
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
            _take_line(reader, line, lines[index + 1] if index + 1 < len(lines) else "")
    reader.end_paragraph()
    return Document(tuple(reader.sentences), tuple(reader.code), reader.headed)


def read_lines(lines: tuple[str, ...]) -> tuple[Sentence, ...]:
    """Return lines of code as sentences, for the numbers in them."""
    pairs = [(line.strip(), words_of(line.strip())) for line in lines]
    return tuple(_sentence(index, text, words, None) for index, (text, words) in enumerate(pairs) if words)


def _take_code(reader: _Reader, line: str) -> None:
    if line.strip():
        reader.code.append(line[:SENTENCE_LIMIT])
        reader.count(len(line.split()))


def _take_line(reader: _Reader, line: str, below: str) -> None:
    line = line[: TEXT_LIMIT // 4]
    heading = _HEADING.match(line) or _BOLD_LINE.match(line)
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
        reader.begin(part if level_one else reader.part)
        return
    if not line.strip() or _UNDERLINE.match(line):
        reader.end_paragraph()
        return
    bullet = _BULLET.match(line)
    if bullet:
        reader.end_paragraph()
        line = line[bullet.end() :]
    label = _LABEL.match(line)
    # In the middle of a sentence "cause:" may be a word that a line happens to begin with.
    begins = not reader.paragraph or reader.paragraph[-1].endswith((".", "!", "?", ":", ";"))
    if (
        label
        and (begins or label[1][0].isupper())
        and len(label[1].split()) <= 3
        and (part := part_of_heading(label[1])) is not None
    ):
        reader.begin(part)
        line = line[label.end() :]
    reader.paragraph.append(line.strip())


def _plain(text: str) -> str:
    """Return Markdown without its marks, addresses and pictures."""
    text = _plain_numbers(text)
    text = _LINK.sub(lambda match: "" if match[1] else match[2], text)
    text = _ADDRESS.sub("", text)
    return " ".join(_MARKS.sub("", _TAG.sub(" ", text)).split())


def _plain_numbers(text: str) -> str:
    """Return powers of ten as programs write them: 3.2 x 10^-7 as 3.2e-7."""
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_LOWERED), text).replace("\u2212", "-")
    return _POWER.sub(lambda match: f"{match[1] or '1'}e{match[2]}", text)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph; a semicolon ends one, a point in a number or in `e.g.` does not."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        head = text[max(start, match.end() - 12) : match.end()].lower()
        if head.endswith(_ABBREVIATIONS) and match[0] == ".":
            continue
        yield from _bounded(text[start : match.end()].strip())
        start = match.end()
    yield from _bounded(text[start:].strip())


def _bounded(sentence: str) -> Iterator[str]:
    for at in range(0, len(sentence), SENTENCE_LIMIT):
        yield sentence[at : at + SENTENCE_LIMIT]


def _sentence(index: int, text: str, words: tuple[Word, ...], part: Part | None) -> Sentence:
    texts = tuple(word.text for word in words)
    clause, clauses = 0, []
    for number, word in enumerate(words):
        between = text[words[number - 1].end : word.start] if number else ""
        if number and (_BREAK.search(between) or word.text in CONTRASTS):
            clause += 1
        clauses.append(clause)
    return Sentence(index, text, words, part, Line(texts), tuple(clauses))
