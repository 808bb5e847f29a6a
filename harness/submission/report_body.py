"""The text of a report under its front matter: how many words it has, and the pictures and snippets in it."""

import re
from dataclasses import dataclass

from harness.errors import UserError

WORD_LIMIT = 500

# In Chinese and Japanese, which put no spaces between words, each character counts.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_DELIMITER_ROW = re.compile(r"\|[\s:|]*+-[\s:|-]*+")
# A picture in Markdown or in HTML; one that is not closed is text.
# Bounded repeats: without them, 40 KB of "![" or "<img " take seconds.
_IMAGE = re.compile(
    r"""!\[[^\]\n]{0,300}\]\(\s{0,20}<?([^\s)>]+)|<img\b[^>\n]{0,300}?\bsrc\s{0,20}=\s{0,20}["']?([^\s"'>]+)""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ReportBody:
    """A report's text.

    `words` counts what stands in prose and headings; `prose_words` leaves the headings out. `snippets` counts
    code blocks and tables that hold something, `images` holds the addresses of the pictures.
    """

    text: str
    words: int
    prose_words: int
    snippets: int
    images: tuple[str, ...]


def count_words(text: str) -> int:
    """Return the number of words: runs of characters between spaces that hold a letter or a digit.

    It is what `wc -w` counts, less lone punctuation; each Chinese or Japanese character is a word of its own.
    """
    spaced = _WIDE.sub(" x ", text)
    return sum(any(character.isalnum() for character in word) for word in spaced.split())


def read_body(text: str, source: str, first_line: int) -> ReportBody:
    """Return what the text of a report holds.

    Code blocks between fences and tables are evidence, not prose: their words do not count. Headings, lists,
    quotations and links do. Raises `UserError` for a code block that does not end, since all that follows
    would belong to it.
    """
    prose: list[str] = []
    headings: list[str] = []
    snippets = 0
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        if end := _code_end(lines, index, source, first_line):
            snippets += any(line.strip() for line in lines[index + 1 : end - 1])
        elif end := _table_end(lines, index):
            snippets += 1
        else:
            end = index + 1
            (headings if re.match(r" {0,3}#{1,6}(\s|$)", lines[index]) else prose).append(lines[index])
        index = end
    prose_words = sum(map(count_words, prose))
    images = tuple(first or second for first, second in _IMAGE.findall("\n".join(prose)))
    return ReportBody(text, prose_words + sum(map(count_words, headings)), prose_words, snippets, images)


def _code_end(lines: list[str], start: int, source: str, first_line: int) -> int | None:
    """Return the index after the code block that begins here (CommonMark, section 4.5), or None."""
    opening = _FENCE.fullmatch(lines[start])
    if opening is None or (opening[1][0] == "`" and "`" in opening[2]):
        return None
    for index in range(start + 1, len(lines)):
        closing = _FENCE.fullmatch(lines[index])
        if closing is not None and closing[1].startswith(opening[1]) and not closing[2].strip():
            return index + 1
    raise UserError(
        f"{source}, line {first_line + start}: the code block that begins here does not end; "
        f"put a line with {opening[1]} under it."
    )


def _table_end(lines: list[str], start: int) -> int | None:
    """Return the index after the table that begins here, or None; its second row is one of dashes."""
    # The second row first: looking for the last row from each line anew, 30,000 lines of "|" would take minutes.
    if (
        not _is_row(lines[start])
        or _DELIMITER_ROW.fullmatch("".join(lines[start + 1 : start + 2]).strip()) is None
    ):
        return None
    rows = start
    while rows < len(lines) and _is_row(lines[rows]):
        rows += 1
    return rows


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")
