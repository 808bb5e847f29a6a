"""Parse the Markdown text of a report into tokens.

The page of a report shows these tokens, and the grader reads only them. The page and the grader ignore the targets and
titles of links, reference definitions, and descriptions of pictures. HTML is shown as text. Hidden characters are shown
by name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["prose", "heading", "code", "quotation"]

# The most characters that are read, without the data of pictures. 500 words have about 4,000, and pasted log lines some
# more. The parser takes quadratic time for some texts: the slowest known text of this length takes one second.
LIMIT = 20_000
TOO_LONG = f"only its first {LIMIT:,} characters are read and shown: shorten the code blocks and tables."
# Tables with more cells are read as text: the parser fills short rows, so two characters may become a thousand cells.
_CELLS = 5_000

# Picture formats that contain only pixels, with the first bytes of each. SVG is not allowed, because it may contain a
# program.
EMBEDDED = re.compile(
    "data:image/(?:png;base64,iVBORw0KGgo|jpeg;base64,/9j/|gif;base64,R0lGOD|webp;base64,UklGR)[A-Za-z0-9+/]{64,}={0,2}"
)
_VALUE = re.compile(r"[0-9]|\b(?:nan|inf|infinity)\b", re.IGNORECASE)
_COPIED = re.compile(r"\{[^{}\n]{0,200}:[^{}\n]{0,200}?[0-9]|[│┃][^│┃\n]*[0-9]")
# Lines of program code do not count as log lines: a definition, an import, or a call of a method.
_PROGRAM = re.compile(r"^\W*(?:def \w|class [A-Za-z_]\w*[(:]|import \w|from \S+ import )|\w\.[A-Za-z_]\w*\(")
_PLACE = re.compile(r"embedded-picture-([0-9]{1,4})")
_BOLD_LIMIT = 80  # a bold line with more characters is not a heading
# Chinese and Japanese have no spaces between words, so each character counts as a word.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

# Hidden characters are control characters except tab and line feed, marks that change the direction of writing,
# invisible separators and tags, and lone surrogates. The joiners U+200C and U+200D do not count as hidden, because
# Persian, Indic scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# More than four accents on one letter would cover neighbouring lines.
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = re.compile(f"({_MARKS}{{4}}){_MARKS}+")


def visible(text: str) -> str:
    """Return the text with every hidden character replaced by its code: the escape character becomes "<U+001B>".

    Line feeds and tabs stay as they are, and "\r\n" becomes a line feed.
    """
    if text.isascii() and text.isprintable():
        return text
    spelled = _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text.replace("\r\n", "\n"))
    return _PILE.sub(r"\1…", spelled)


def count_words(text: str) -> int:
    """Return the number of words in a text. A word is text between spaces with at least one letter or digit.

    Unlike `wc -w`, this does not count punctuation between spaces, and counts each Chinese or Japanese character as a
    word.
    """
    spaced = _WIDE.sub(" x ", text)
    return sum(any(character.isalnum() for character in word) for word in spaced.split())


@dataclass(frozen=True)
class Block:
    """One part of a text: a paragraph, a heading, a quoted paragraph, or code (a fenced or indented block, or a table).

    `text` is the visible text. It has back ticks around inline code, and bars between the cells of a table.
    """

    kind: BlockKind
    text: str


@dataclass(frozen=True)
class Body:
    """The parsed text under the front matter of a report.

    `pictures` contains the addresses of all pictures. `cut` is the number of characters at the end that are not read.
    """

    tokens: Sequence[Token]
    blocks: tuple[Block, ...]
    pictures: tuple[str, ...]
    cut: int

    @cached_property
    def words(self) -> int:
        """The number of words in prose and headings. Code blocks and tables do not count."""
        return sum(count_words(block.text) for block in self.blocks if block.kind != "code")

    @cached_property
    def prose_words(self) -> int:
        """The number of words in prose, without headings."""
        prose = (block for block in self.blocks if block.kind in ("prose", "quotation"))
        return sum(count_words(block.text) for block in prose)

    @cached_property
    def filled_sections(self) -> int:
        """The number of headings with text under them. The headings may be in any language."""
        filled = previous = 0
        for block in self.blocks:
            if block.kind == "heading":
                previous = 1
            elif previous and any(character.isalnum() for character in block.text):
                filled, previous = filled + 1, 0
        return filled

    @property
    def shows_picture(self) -> bool:
        """Whether the page shows a picture."""
        return any(map(EMBEDDED.fullmatch, self.pictures))

    @cached_property
    def value_lines(self) -> Sequence[str]:
        """The lines that show printed values.

        In code, tables and quotations these are the lines that contain a number (or NaN) and are not program code. In
        prose these are records in braces, and table rows with box characters, as the commands print them.
        """
        return [line for block in self.blocks for line in _value_lines(block)]


def _value_lines(block: Block) -> Iterator[str]:
    is_prose = block.kind in ("prose", "heading")
    for line in block.text.split("\n"):
        program, _, comment = line.partition("#")
        shown = comment if not is_prose and _PROGRAM.search(program) else line
        if (_COPIED if is_prose else _VALUE).search(shown):
            yield shown


@lru_cache(maxsize=8)  # several functions read the same report
def read_body(text: str) -> Body:
    """Return the tokens and blocks of the text of a report. Any text is valid."""
    embedded: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        embedded.append(match[0])
        return f"embedded-picture-{len(embedded) - 1}"

    text = EMBEDDED.sub(set_aside, visible(text))
    lines = text[:LIMIT].split("\n")
    columns = max((line.count("|") for line in lines if not line.strip(" \t>|:-")), default=0)
    tokens = _parser(tables=columns * len(lines) <= _CELLS).parse(text[:LIMIT])
    reader = _Reader(embedded)
    for before, token in zip([None, *tokens], tokens, strict=False):
        reader.read(token, is_heading=before is not None and before.type == "heading_open")
    return Body(tokens, tuple(reader.blocks), tuple(reader.pictures), max(0, len(text) - LIMIT))


@cache
def _parser(*, tables: bool) -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", *(["table"] if tables else [])])


class _Reader:
    """Collects blocks and pictures from the tokens of a document, which must come in order."""

    def __init__(self, embedded: Sequence[str]) -> None:
        self.blocks: list[Block] = []
        self.pictures: list[str] = []
        self._embedded = embedded
        self._pieces: list[str] = []
        self._quotes = 0
        self._in_table = False

    def read(self, token: Token, *, is_heading: bool) -> None:
        """Read the next token of the document."""
        match token.type:
            case "fence" | "code_block":
                self._write_token(token)
                self._end("code")
            case "blockquote_open" | "blockquote_close":
                self._quotes += token.nesting
            case "table_open":
                self._in_table = True
            case "th_close" | "td_close":
                self._write(" | ")
            case "tr_close":
                self._write("\n")
            case "table_close":
                self._in_table = False
                self._end("code")
            case "inline" if self._in_table:
                self._write_line(token.children or ())
            case "inline":
                children = token.children or []
                title = len(children) if is_heading else _bold_line(children)
                self._write_line(children[:title])
                self._end("heading")
                self._write_line(children[title:])
                self._end("quotation" if self._quotes else "prose")

    def _write_line(self, children: Sequence[Token]) -> None:
        for child in children:
            match child.type:
                case "text":
                    self._write_token(child)
                case "code_inline":
                    self._write("`")
                    self._write_token(child)
                    self._write("`")
                case "softbreak" | "hardbreak":
                    self._write("\n")
                case "image":
                    self._note_picture(child)

    def _note_picture(self, token: Token) -> None:
        place = _PLACE.fullmatch(str(token.attrs["src"]))
        if place and int(place[1]) < len(self._embedded):
            token.attrs["src"] = self._embedded[int(place[1])]
        self.pictures.append(str(token.attrs["src"]))

    def _write_token(self, token: Token) -> None:
        token.content = visible(token.content)  # an HTML entity may stand for a hidden character
        self._write(token.content)

    def _write(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self, kind: BlockKind) -> None:
        if text := "".join(self._pieces):
            self.blocks.append(Block(kind, text))
        self._pieces = []


def _bold_line(children: Sequence[Token]) -> int:
    """Return the number of tokens in a bold first line of a paragraph, or 0.

    Many authors use such a line as a heading.
    """
    shown = [token for token in children if token.content or token.type != "text"]
    end = next((at for at, token in enumerate(shown) if token.type.endswith("break")), len(shown))
    line = shown[:end]
    if len(line) > 3 and line[-1].content in (":", ".", "："):
        line = line[:-1]
    is_bold = [token.type for token in line] == ["strong_open", "text", "strong_close"]
    if not is_bold or len(line[1].content) > _BOLD_LIMIT:
        return 0
    return len(children) if end == len(shown) else children.index(shown[end])
