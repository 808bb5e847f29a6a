"""Extract the sections of a submission's page that an instructor needs, and mark the words of a reason in them."""

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

# A tag of our pages. They escape "<" in texts and quotes in attributes.
_TAG = re.compile(r'</?[a-z](?:"[^"]*"|[^">])*>')
_PARTS = {"report": "The report", "fix": "The submitted code", "runs": "Replays by the grader", "findings": "Findings"}
_DIFF_LINE = re.compile(r'<tr(?: class="(added|removed|gap|)")?>(.*?)</tr>', re.DOTALL)
_PLACE = re.compile(r'\+(\d+)|<td class="n">(\d+)')  # the first line of a gap, or the number of a line
_LINE = re.compile(r"\bline (\d+)")
# Words of a reason to look for in the page: names in code, and numbers.
_WORD = re.compile(r"[A-Za-z]\w*_\w+|\d+\.\d+|\d{3,}")


def excerpts(page: str, reason: str, key: str = "") -> list[tuple[str, str, Markup]]:
    """Return the report, the changed lines and the measurements of a page, each as id, heading and HTML.

    Mark names, numbers and lines that the `reason` mentions, and the `key` in the front matter. Leave out all sections
    that could name the student: the score, the items and the provenance.
    """
    words = {*_WORD.findall(reason), *([f"{key}:"] if key else [])}
    lines = set(map(int, _LINE.findall(reason)))
    found = _sections(page)
    return [
        (name, heading, Markup(_mark_words(_with_lines(found[name], lines), words)))
        for name, heading in _PARTS.items()
        if name in found
    ]


def own_work(page: str) -> Markup:
    """Return the sections of a page that show the submitted files, unchanged."""
    found = _sections(page)
    return Markup("").join(
        Markup('<section aria-labelledby="{0}">\n<h2 id="{0}">{1}</h2>{2}</section>\n').format(
            name, _PARTS[name], Markup(found[name])
        )
        for name in ("fix", "report")
        if name in found
    )


def _sections(page: str) -> dict[str, str]:
    """Return the HTML below the heading of each section, by the id of the heading."""
    found, name, start = {}, "", 0
    for tag in _TAG.finditer(page):
        if tag[0].startswith('<section aria-labelledby="'):
            name = tag[0].split('"')[1]
        elif tag[0] == "</h2>":
            start = tag.end()
        elif tag[0] == "</section>":
            found[name] = page[start : tag.start()]
    return found


def _mark_words(html: str, words: Iterable[str]) -> str:
    if not words:
        return html
    ordered = sorted((str(escape(word)) for word in words), key=lambda word: (-len(word), word))
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, ordered))})(?!\w)")
    parts, end = [], 0
    for tag in _TAG.finditer(html):
        parts += [pattern.sub(r"<mark>\g<0></mark>", html[end : tag.start()]), tag[0]]
        end = tag.end()
    return "".join(parts) + html[end:]


def _with_lines(html: str, lines: set[int]) -> str:
    """Return HTML in which these lines of the student's file are marked, in a diff or in a whole file."""
    number = 0

    def mark(row: re.Match[str]) -> str:
        nonlocal number
        place = _PLACE.search(row[2]) if row[1] in ("gap", None) else None
        if place is not None:
            number = int(place[1] or place[2])
        if row[1] in ("gap", "removed"):
            return row[0]
        here, number = number, number + 1
        return row[0].replace("<tr", '<tr data-marked=""', 1) if here in lines else row[0]

    return _DIFF_LINE.sub(mark, html) if lines else html
