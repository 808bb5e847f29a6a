"""The text of a report: its Markdown, parsed once. The page shows these tokens, and the grader reads nothing else.

Targets and titles of links, reference definitions and descriptions of pictures are not shown, and not read. HTML is
text: the page shows it as it was written. Hidden characters are spelled out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

BlockKind = Literal["prose", "heading", "code", "quotation"]

# Characters, without the bytes of pictures: 500 words are about 4,000, and snippets come on top. The parser's time
# grows with the square of some texts: the worst that we know takes a second at this length.
LIMIT = 20_000
TOO_LONG = f"only its first {LIMIT:,} characters are read and shown: shorten the code blocks and tables."
# The parser completes short rows, so a line of two characters may stand for a thousand cells.
_CELLS = 5_000

# Formats that hold pixels and nothing else (an SVG is a program), and how their bytes begin.
EMBEDDED = re.compile(
    "data:image/(?:png;base64,iVBORw0KGgo|jpeg;base64,/9j/|gif;base64,R0lGOD|webp;base64,UklGR)[A-Za-z0-9+/]{64,}={0,2}"
)
_VALUE = re.compile(r"[0-9]|\b(?:nan|inf|infinity)\b", re.IGNORECASE)
_COPIED = re.compile(r"\{[^{}\n]{0,200}:[^{}\n]{0,200}?[0-9]|[│┃][^│┃\n]*[0-9]")
# The fix is shown as a program, and shows no symptom: a definition, an import, or a call of something in something.
_PROGRAM = re.compile(r"^\W*(?:def \w|class [A-Za-z_]\w*[(:]|import \w|from \S+ import )|\w\.[A-Za-z_]\w*\(")
_PLACE = re.compile(r"embedded-picture-([0-9]{1,4})")
_BOLD_LIMIT = 80  # characters of a bold line that is a heading
# In Chinese and Japanese, which put no spaces between words, each character counts.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")

# Characters without a picture of their own: control characters except tab and line feed, marks that turn the
# direction of writing, invisible separators and tags, lone surrogates. The joiners U+200C and U+200D stay:
# Persian, Indic scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# More than four accents on one letter are there to cover the lines around it.
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = re.compile(f"({_MARKS}{{4}}){_MARKS}+")


def visible(text: str) -> str:
    """Return a text in which every control, format or direction character is spelled out.

    Line feeds and tabs stay, "\r\n" is a line feed; escape becomes "<U+001B>".
    """
    if text.isascii() and text.isprintable():
        return text
    spelled = _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", text.replace("\r\n", "\n"))
    return _PILE.sub(r"\1…", spelled)


def count_words(text: str) -> int:
    """Return the number of words: runs of characters between spaces that hold a letter or a digit.

    `wc -w` counts the same, and lone punctuation, too; each Chinese or Japanese character is a word of its own.
    """
    spaced = _WIDE.sub(" x ", text)
    return sum(any(character.isalnum() for character in word) for word in spaced.split())


@dataclass(frozen=True)
class Block:
    """A paragraph, a heading, a quoted paragraph, or code: a fence, an indented block, or a table.

    `text` is what a reader sees, with back ticks around code in a line and bars between the cells of a table.
    """

    kind: BlockKind
    text: str


@dataclass(frozen=True)
class Body:
    """The text under the front matter.

    `pictures` are the addresses of all pictures; `cut` is how many characters are left out at the end.
    """

    tokens: Sequence[Token]
    blocks: tuple[Block, ...]
    pictures: tuple[str, ...]
    cut: int

    @cached_property
    def words(self) -> int:
        """How many words prose and headings have; code blocks and tables do not count."""
        return sum(count_words(block.text) for block in self.blocks if block.kind != "code")

    @cached_property
    def prose_words(self) -> int:
        """How many words the prose has, without headings."""
        prose = (block for block in self.blocks if block.kind in ("prose", "quotation"))
        return sum(count_words(block.text) for block in prose)

    @cached_property
    def filled_sections(self) -> int:
        """How many headings have something under them, in whatever language."""
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
        """The lines that the page shows with values as they were printed.

        These are lines with a number (or NaN) of code, a table or a quotation that are no program; and in prose
        records in braces and rows of a table with box characters, as the commands print them.
        """
        return [line for block in self.blocks for line in _value_lines(block)]


def _value_lines(block: Block) -> Iterator[str]:
    is_prose = block.kind in ("prose", "heading")
    for line in block.text.split("\n"):
        program, _, comment = line.partition("#")
        shown = comment if not is_prose and _PROGRAM.search(program) else line
        if (_COPIED if is_prose else _VALUE).search(shown):
            yield shown


@lru_cache(maxsize=8)  # several checks read one report
def read_body(text: str) -> Body:
    """Return a report's text as tokens and blocks, whatever it holds."""
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
    """Collects blocks and pictures from the tokens, in order."""

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
        token.content = visible(token.content)  # an entity may stand for a hidden character
        self._write(token.content)

    def _write(self, text: str) -> None:
        self._pieces.append(text)

    def _end(self, kind: BlockKind) -> None:
        if text := "".join(self._pieces):
            self.blocks.append(Block(kind, text))
        self._pieces = []


def _bold_line(children: Sequence[Token]) -> int:
    """Return how many tokens of a paragraph are a first line in bold, which many write as a heading; else 0."""
    shown = [token for token in children if token.content or token.type != "text"]
    end = next((at for at, token in enumerate(shown) if token.type.endswith("break")), len(shown))
    line = shown[:end]
    if len(line) > 3 and line[-1].content in (":", ".", "："):
        line = line[:-1]
    is_bold = [token.type for token in line] == ["strong_open", "text", "strong_close"]
    if not is_bold or len(line[1].content) > _BOLD_LIMIT:
        return 0
    return len(children) if end == len(shown) else children.index(shown[end])
