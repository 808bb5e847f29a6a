"""Markdown as plain text: no marks, addresses or pictures, and powers of ten as programs write them."""

import re

_LINK = re.compile(r"(!?)\[([^\[\]\n]{0,200})\]\([^()\s]{0,2000}\)")
_ADDRESS = re.compile(r"\b(?:https?://|data:)[^\s)>]+")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|<!--[^<>]{0,500}-->")
# A star between two numbers multiplies them.
_MARKS = re.compile(r"`+|\*{2,}|(?<!\d)(?<!\d )\*|\*(?! ?\d)|(?<![^\W_])_+|_+(?![^\W_])|^\s*>+", re.MULTILINE)
_RAISED = re.compile("[\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}")
# 94'744 and 94_744, or with a narrow space.
_THOUSANDS = re.compile("(?<=\\d)[\u00a0\u2009\u202f'_](?=\\d{3}(?!\\d))")
_LOWERED = str.maketrans("\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "-0123456789")
_POWER = re.compile(
    r"(?<![\d.])(?:(\d{1,20}(?:\.\d{1,20})?)\s?[\u00d7x*\u00b7]\s?)?10\^[{(]?([+-]?\d{1,3})[})]?"
)


def plain_text(text: str) -> str:
    """Return Markdown without its marks, addresses and pictures."""
    text = _plain_numbers(text)
    text = _LINK.sub(lambda match: "" if match[1] else match[2], text)
    text = _ADDRESS.sub("", text)
    return " ".join(_MARKS.sub("", _TAG.sub(" ", text)).split())


def _plain_numbers(text: str) -> str:
    """Return powers of ten as programs write them: 3.2 x 10^-7 as 3.2e-7."""
    text = _THOUSANDS.sub("", text)
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_LOWERED), text).replace("\u2212", "-")
    return _POWER.sub(lambda match: f"{match[1] or '1'}e{match[2]}", text)
