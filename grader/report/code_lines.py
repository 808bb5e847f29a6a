"""Python source as highlighted lines; nothing of it is compiled or run.

A small scanner, not a library: whatever a student sends, it takes time in proportion to its length. Pygments
needs a minute for 40,000 characters of blank lines that each hold one space.
"""

import keyword
import re
from functools import lru_cache

from markupsafe import Markup, escape

from grader.report.text import visible

LINES, COLUMNS = 1000, 300  # an experiment has about 90 lines; a page must not grow with a hostile one

# Every alternative takes all it can and gives nothing back; a string that does not end takes the rest. Groups are
# atomic, (?>...), where they could be possessive: before 3.11.5, *+ after a group matches what it must not.
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


def plain_lines(source: str) -> list[str]:
    """Return the lines of a source as they are shown: hidden characters spelled out, cut to a bounded size."""
    lines = visible(source).split("\n")
    if not lines[-1]:
        lines.pop()
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} …" for line in lines[:LINES]]
    if len(lines) > LINES:
        cut.append(f"… {len(lines) - LINES} more lines")
    return cut


@lru_cache(maxsize=64)  # a class has many fixes, and few broken sources
def highlighted_lines(lines: tuple[str, ...]) -> tuple[Markup, ...]:
    """Return the same lines as HTML; a span of class c, k, s, m or f holds what has a colour.

    c: comments; k: keywords; s: strings; m: numbers; f: decorators, and the names that def and class define.
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


def _spans(text: str, kind: str) -> str:
    """Return a token as HTML; one of several lines has a span on each."""
    if not kind:
        return escape(text)
    return "\n".join(
        f'<span class="{kind}">{escape(line)}</span>' if line else "" for line in text.split("\n")
    )
