"""Attacks on the parsers of reports: YAML that grows or makes objects, and texts that make patterns very slow."""

from collections.abc import Callable
from itertools import cycle, islice

from attacks.attack import Attack, Base, Expected, with_members
from attacks.reader_pages import with_body
from harness.recipes.recipe import recipe_ids

# If the rules cannot read a report, the submission waits for the instructor.
_NOTHING_GAINED = Expected(("graded", "not judged"), gains_over="reference")
_LARGE = Expected(("rejected",), "shorten it")
# The mark is split, because it must not appear anywhere as a whole.
_TOUCH = "touch /tmp/wreck-''breached-yaml"

# A billion laughs in nine lines.
LAUGHS = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
_MATTER = {
    "laughs": ("an alias of aliases of aliases: 10 ** 9 words", "anchors and aliases", LAUGHS),
    "cycle": ("a list that holds itself", "anchors and aliases", "diagnosis: &a [*a]\n"),
    "merge": ("mappings merged into each other", "anchors and aliases",
        "a: &a {x: 1}\nb:\n  <<: [" + "*a, " * 3000 + "*a]\n"),
    "apply": ("a tag that runs a command", "tags", f'evidence: !!python/object/apply:os.system ["{_TOUCH}"]\n'),
    "own_tag": ("a handle of its own for tags", "",
        "%TAG ! tag:yaml.org,2002:python/\n--- \nx: !object/apply:os.system [id]\n"),
    "binary": ("data in base 64", "tags", "evidence: !!binary aGVsbG8=\n"),
    "deep": ("8,000 brackets", "", "x: " + "[" * 8000 + "\n"),
    "deep_lists": ("lists in lists on one line", "", "- " * 7000 + "x\n"),
    "many_keys": ("3,000 keys", "", "".join(f"k{n}: 1\n" for n in range(2500))),
    "one_key": ("the same key again and again", "twice", "a: 1\n" * 3000),
    "quotes": ("a text in quotes that does not end", "", 'x: "' + "\\x41" * 3500 + "\n"),
    "escape": ("a character beyond Unicode", "", 'x: "\\UFFFFFFFF"\n'),
    "version": ("a version of 5,000 digits", "", "%YAML " + "1" * 5000 + ".1\n---\nx: 1\n"),
    "number": ("a value of 10,000 digits", "",
        "evidence:\n  - {run: broken, signal: loss, step: " + "9" * 5000 + ", value: 1e" + "9" * 4000 + "}\n"),
    "places": ("a step below all", "", "evidence:\n  - {run: broken, signal: loss, step: -1, value: nan}\n"),
    "signal": ("a signal that clears the screen", "",
        'evidence:\n  - {run: broken, signal: "\\e[2J\\u202e=1+1", step: 1, value: 1}\n'),
    "cause": ("HTML as the cause, the function and the value", "",
        "diagnosis:\n  - {cause: <img src=x onerror=alert(1)>, where: <script>alert(2)</script>,"
        " first_wrong: {signal: <b>, step: 1, value: <svg onload=alert(3)>}}\nevidence: <script>\n"),
    "every_cause": ("a diagnosis of every cause there is", "", "diagnosis:\n" + "".join(
        f"  - {{cause: {cause}, where: build_optimizer, first_wrong: {{signal: loss, step: 1, value: 1}}}}\n"
        for cause in (*recipe_ids(), "healthy"))),
}  # fmt: skip


def _matter(text: str) -> Callable[[Base], bytes]:
    """The correct fix with this front matter."""
    report = f"---\n{text}---\nThe rate was too large.\n".encode()
    return lambda base: with_members(base.reference, {"report.md": report}, student="x")


def _body(text: str) -> Callable[[Base], bytes]:
    return lambda base: with_body(base, text)


def _words(*words: str, count: int = 500) -> str:
    return " ".join(islice(cycle(words), count))


# The patterns that count words and headings, repeated as often as the size of a report allows.
_PROSE = {
    "headings": "# Root cause\n" * 4_000,
    "spaces": "rate" + " " * 50_000 + "large",
    "spaced_lines": ("rate" + " " * 1_996) * 25,
    "points": "a" + "." * 50_000 + "b",
    "accents": "a" + "\u0301" * 25_000,
    "wide": "\u5b66\u4e60\u7387" * 6_000,
}
# Inputs that are slow for many Markdown parsers.
_MARKDOWN = {
    "brackets": "[" * 50_000,
    "links": "[a](" * 12_000,
    "picture_text": "![a](<" * 8_000,
    "references": "[a]: x\n" * 7_000,
    "reference_uses": "[a]: " + "x" * 5_000 + "\n\n" + "[a]" * 15_000,
    "emphasis": "*a_ " * 12_000,
    "emphasis_runs": "a**b" + "c* " * 15_000,
    "back_ticks": "".join("`" * n + " " for n in range(1, 330)),
    "quotations": ">" * 50_000,
    "quoted_lists": "> - " * 12_000,
    "lists": "".join(" " * n + "- a\n" for n in range(300)),
    "tables": "|" + "a|" * 200 + "\n|" + "-|" * 200 + "\n" + "a\n" * 15_000,
    "fences": "```\n" * 12_001,
    "tags": "<a " * 18_000,
    "tag_attributes": "<a b='" * 9_000,
    "comments": "<!--" * 14_000,
    "cdata": "<![CDATA[" * 6_000,
    "entities": "&" * 58_000,
    "back_slashes": "\\" * 58_000,
    "data_pictures": "data:image/png;base64," + "A" * 58_000,
    "data_many": "data:image/png;base64,AAAA " * 2_100,
    "underlines": "a\n=\n" * 14_000,
    "picture_links": "![[](" * 14_000,
    "wide_table": "a|" * 100 + "\n" + "-|" * 100 + "\n" + "x\n" * 28_000,
    "table_rows": "|a|\n|-|\n" * 8_000,
    "rows": "|\n" * 28_000,
    "dashes": "|a\n|" + "-" * 56_000 + "x\n",
}
# Files that other parsers of the suite read: each kind once.
_SUITE = {
    *(f"yaml_{name}" for name in ("laughs", "cycle", "apply", "deep", "escape", "number", "signal", "cause")),
    *(f"prose_{name}" for name in ("headings", "spaced_lines", "points", "wide")),
    *(f"markdown_{name}" for name in ("brackets", "tables", "data_many", "tags", "rows", "dashes")),
}


def _attack(id: str, says: str, expected: Expected, build: Callable[[Base], bytes]) -> Attack:
    return Attack(id, "reader", says, expected, build, in_suite=id in _SUITE)


ATTACKS = (
    *(_attack(f"yaml_{what}", f"YAML: {says}", Expected(("graded",), because, gains_over="reference"), _matter(text))
        for what, (says, because, text) in _MATTER.items()),
    *(_attack(f"prose_{what}", f"a text without an end: {what}", _NOTHING_GAINED, _body(text))
        for what, text in _PROSE.items()),
    *(_attack(f"markdown_{what}", f"Markdown without an end: {what}", _NOTHING_GAINED, _body(text))
        for what, text in _MARKDOWN.items()),
    Attack("report_10_mb", "reader", "a report of 10 MB", _LARGE, _body("word " * 2_000_000)),
    Attack("report_not_utf8", "reader", "a report that is no text", _NOTHING_GAINED,
        lambda base: with_members(base.reference, {"report.md": b"---\n\xff\xfe\n---\n\xff" * 4000}, student="x")),
)  # fmt: skip
