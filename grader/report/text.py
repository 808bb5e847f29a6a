"""Text of other people's, made fit to be shown: nothing invisible, nothing that moves what stands beside it."""

import re

# Everything that has no picture of its own: control characters but tab and line feed, marks that turn the
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
MISSING = "\N{EM DASH}"


def visible(text: str) -> str:
    """Return a text in which every control, format or direction character is spelled out.

    Line feeds and tabs stay, "\r\n" is a line feed; escape becomes "<U+001B>".
    """
    if text.isascii() and text.isprintable():
        return text
    return _PILE.sub(r"\1…", _HIDDEN.sub(_spelled, text.replace("\r\n", "\n")))


def clipped(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text as `visible` shows it, on one line, and how many are left out."""
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} more characters)"
    return visible(text).replace("\n", " ").replace("\t", " ")


def points(value: float | None) -> str:
    """Return points without needless zeros, a dash where they are open."""
    return MISSING if value is None else f"{round(value, 2):g}"


def tenths(value: float | None) -> str:
    """Return a mean in tenths of a point, a dash where there is none."""
    return MISSING if value is None else f"{value:.1f}"


def _spelled(match: re.Match[str]) -> str:
    return f"<U+{ord(match[0]):04X}>"
