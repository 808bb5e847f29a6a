"""Extract the sections that an instructor needs from the page of a submission, and mark words in these sections."""

import re
from collections.abc import Iterable

from markupsafe import Markup, escape

# Matches a tag. In our pages, "<" in a text and quotes in an attribute are always escaped.
_TAG = re.compile(r'</?[a-z](?:"[^"]*"|[^">])*>')
_PARTS = {"report": "The report", "fix": "The submitted code", "runs": "Replays by the grader", "findings": "Findings"}
_DIFF_LINE = re.compile(r'<tr(?: class="(added|removed|gap|)")?>(.*?)</tr>', re.DOTALL)
_PLACE = re.compile(
    r'\+(\d+)|<td class="n">(\d+)'
)  # the number of the first line after a gap in a diff, or a line number in a whole file
_LINE = re.compile(r"\bline (\d+)")
# Matches the words of a reason that are marked in the page: names from the code, and numbers.
_WORD = re.compile(r"[A-Za-z]\w*_\w+|\d+\.\d+|\d{3,}")


def excerpts(page: str, reason: str, key: str = "") -> list[tuple[str, str, Markup]]:
    """Return the id, the heading and the HTML of some sections of a page: the report, the code, replays and findings.

    Leave out the sections that could name the student: the score, the items and the provenance. In the HTML, mark the
    names, the numbers and the lines that `reason` mentions, and the line of the front matter that begins with `key`.
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
    """Return the sections of a page that show the submitted code and the report. Do not change these sections."""
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
    """Return the HTML of a diff or of a whole file, with these lines of the student's file marked."""
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
