"""Show Python source: highlighted lines, and what changed between two versions. Nothing is compiled or run."""

import difflib
import keyword
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from markupsafe import Markup, escape

from grader.report.text import visible

LINES, COLUMNS = 1000, 300  # an experiment has about 90 lines; a hostile one must not make the page grow
_CONTEXT = 3  # unchanged lines around a change

# A scanner of our own, because it takes time in proportion to the text whatever a student sends: Pygments needs a
# minute for 40,000 characters of blank lines that each hold one space. Every alternative takes all it can and gives
# nothing back; a string that does not end takes the rest. Groups are atomic, (?>...), because before Python 3.11.5
# a possessive *+ after a group matches what it must not.
_TOKEN = re.compile(
    r"""
      (?P<c> \#[^\n]*+ )
    | (?P<s> (?:[rRbBuUfF]{1,2}+)? (?: \"{3} (?> (?: [^\\"] | \\. | "(?!"") )* ) (?: \"{3} | \\?\Z )
                                   | '{3} (?> (?: [^\\'] | \\. | '(?!'') )* ) (?: '{3} | \\?\Z )
                                   | " (?> (?: [^\\"\n] | \\. )* ) "?+ | ' (?> (?: [^\\'\n] | \\. )* ) '?+ ) )
    | (?P<m> (?<![\w.]) \.?[0-9] (?> (?: [eE][+-] | [\w.] )* ) )
    | (?P<f> ^[ \t]*+@[\w.]*+ )
    | (?P<word> [^\W\d]\w*+ )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class DiffLine:
    """A line of a diff. `old` and `new` are its numbers in the two files, from 1; None if it is not in that file."""

    kind: Literal["same", "removed", "added"]
    old: int | None
    new: int | None
    code: Markup


@dataclass(frozen=True)
class SourceDiff:
    """Groups of neighbouring changes with the lines around them, and how many lines were removed and added."""

    hunks: tuple[tuple[DiffLine, ...], ...]
    removed: int
    added: int


def plain_lines(source: str) -> list[str]:
    """Return the lines of a source as a page shows them: hidden characters spelled out, cut to a bounded size."""
    lines = visible(source).split("\n")
    if not lines[-1]:
        lines.pop()
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} …" for line in lines[:LINES]]
    if len(lines) > LINES:
        cut.append(f"… {len(lines) - LINES} more lines")
    return cut


@lru_cache(maxsize=64)  # a class has many fixes and few broken sources
def highlighted_lines(lines: tuple[str, ...]) -> tuple[Markup, ...]:
    """Return the same lines as HTML, with spans of class c, k, s, m or f around what has a colour.

    c: comments; k: keywords; s: strings; m: numbers; f: decorators, and names behind def and class.
    """
    if not lines:
        return ()
    source = "\n".join(lines)
    html: list[str] = []
    end, before = 0, ""
    for match in _TOKEN.finditer(source):
        kind = match.lastgroup or ""
        if kind == "word":
            kind = "f" if before in ("def", "class") else "k" if keyword.iskeyword(match[0]) else ""
        html += [escape(source[end : match.start()]), _spans(match[0], kind)]
        end, before = match.end(), match[0]
    html.append(escape(source[end:]))
    return tuple(Markup(line) for line in "".join(html).split("\n"))


def source_diff(broken: str, fixed: str) -> SourceDiff:
    """Compare two sources line by line; a different kind of line ending is no difference."""
    old, new = tuple(plain_lines(broken)), tuple(plain_lines(fixed))
    old_code, new_code = highlighted_lines(old), highlighted_lines(new)
    groups = difflib.SequenceMatcher(None, old, new, autojunk=len(new) > 400).get_grouped_opcodes(_CONTEXT)
    hunks = []
    for group in groups:
        lines: list[DiffLine] = []
        for operation, old_start, old_end, new_start, new_end in group:
            if operation == "equal":
                pairs = zip(range(old_start, old_end), range(new_start, new_end), strict=True)
                lines += [DiffLine("same", i + 1, j + 1, new_code[j]) for i, j in pairs]
                continue
            lines += [DiffLine("removed", i + 1, None, old_code[i]) for i in range(old_start, old_end)]
            lines += [DiffLine("added", None, i + 1, new_code[i]) for i in range(new_start, new_end)]
        hunks.append(tuple(lines))
    kinds = [line.kind for hunk in hunks for line in hunk]
    return SourceDiff(tuple(hunks), kinds.count("removed"), kinds.count("added"))


def _spans(text: str, kind: str) -> str:
    """Return a token as HTML; a token of several lines gets a span on each line."""
    if not kind:
        return escape(text)
    return "\n".join(
        f'<span class="{kind}">{escape(line)}</span>' if line else "" for line in text.split("\n")
    )
