"""Attacks on what reads a report: YAML that grows or constructs, and texts that drive patterns to endless work."""

from collections.abc import Callable
from itertools import cycle, islice

from attacks.attack import Attack, Base, Expected
from attacks.reader_pages import with_body
from harness.recipe import recipe_ids

# What the rules cannot read waits for the instructor.
_NOTHING_GAINED = Expected(("graded", "not judged"), gains_over="reference")
_LARGE = Expected(("rejected",), "shorten it")
# In pieces: the mark as it stands must be nowhere.
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
    "new": ("a tag that makes an object", "tags", "evidence: !!python/object/new:subprocess.Popen [[id]]\n"),
    "module": ("a tag that imports", "tags", "evidence: !!python/module:antigravity ''\n"),
    "own_tag": ("a handle of its own for tags", "",
        "%TAG ! tag:yaml.org,2002:python/\n--- \nx: !object/apply:os.system [id]\n"),
    "binary": ("data in base 64", "tags", "evidence: !!binary aGVsbG8=\n"),
    "deep": ("8,000 brackets", "", "x: " + "[" * 8000 + "\n"),
    "deep_lists": ("lists in lists on one line", "", "- " * 7000 + "x\n"),
    "deep_keys": ("keys of keys", "", "? " * 7000 + "x\n"),
    "many_keys": ("3,000 keys", "", "".join(f"k{n}: 1\n" for n in range(2500))),
    "one_key": ("the same key again and again", "twice", "a: 1\n" * 3000),
    "flow_keys": ("4,000 keys in braces", "", "x: {" + "a, " * 5000 + "}\n"),
    "quotes": ("a text in quotes that does not end", "", 'x: "' + "\\x41" * 3500 + "\n"),
    "escape": ("a character beyond Unicode", "", 'x: "\\UFFFFFFFF"\n'),
    "version": ("a version of 5,000 digits", "", "%YAML " + "1" * 5000 + ".1\n---\nx: 1\n"),
    "spaces": ("nothing but spaces", "", " " * 16000 + "\n"),
    "number": (
        "a value of 10,000 digits",
        "",
        "evidence:\n  - {run: broken, signal: loss, step: "
        + "9" * 5000
        + ", value: 1e"
        + "9" * 4000
        + "}\n",
    ),
    "places": ("a step below all", "",
        "evidence:\n  - {run: broken, signal: loss, step: -1, value: nan}\n"),
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
    """The right fix with this front matter."""

    def build(base: Base) -> bytes:
        report = f"---\n{text}---\nThe rate was too large.\n".encode()
        return base.with_members(base.reference, {"report.md": report}, student="x")

    return build


def _body(text: str) -> Callable[[Base], bytes]:
    def build(base: Base) -> bytes:
        return base.with_members(base.reference, {"report.md": with_body(base, text)}, student="x")

    return build


def _words(*words: str, count: int = 500) -> str:
    return " ".join(islice(cycle(words), count))


# What the reading of numbers and headings looks for, as often as a report may hold it.
_PROSE = {
    "numbers": _words("loss", "of", "1.5", "to", "2.5", "%", "at", "step", "3", "and"),
    "commas": _words("rate,", "large,", "1,000,000,", "not,"),
    "digits": "1" + ",234" * 9_000,
    "dotted": "1" + ".2" * 15_000,
    "exponents": "1e9" * 10_000,
    "powers": "10^{" * 7_000,
    "times": "1 x 10^9 " * 3_000,
    "labels": "Root cause: " * 3_000,
    "headings": "# Root cause\n" * 4_000,
    "headings_bold": "**Root cause**\n" * 3_500,
    "spaces": "rate" + " " * 50_000 + "large",
    "spaced_lines": ("rate" + " " * 1_996) * 25,
    "points": "a" + "." * 50_000 + "b",
    "accents": "a" + "\u0301" * 25_000,
    "wide": "\u5b66\u4e60\u7387" * 6_000,
}
# What parsers of Markdown are known to take long for.
_MARKDOWN = {
    "brackets": "[" * 50_000,
    "links": "[a](" * 12_000,
    "pictures": "![" * 25_000,
    "picture_text": "![a](<" * 8_000,
    "references": "[a]: x\n" * 7_000,
    "reference_uses": "[a]: " + "x" * 5_000 + "\n\n" + "[a]" * 15_000,
    "emphasis": "*a_ " * 12_000,
    "emphasis_runs": "a**b" + "c* " * 15_000,
    "back_ticks": "".join("`" * n + " " for n in range(1, 330)),
    "tildes": "~~a~~ ~~" * 6_000,
    "quotations": ">" * 50_000,
    "quoted_lists": "> - " * 12_000,
    "lists": "".join(" " * n + "- a\n" for n in range(300)),
    "many_lists": "- a\n" * 12_000,
    "tables": "|" + "a|" * 200 + "\n|" + "-|" * 200 + "\n" + "a\n" * 15_000,
    "wide_table": "|" * 25_000 + "\n|" + "-|" * 12_000 + "\n",
    "table_rows": "|a|\n|-|\n" * 8_000,
    "fences": "```\n" * 12_001,
    "tags": "<a " * 18_000,
    "tag_attributes": "<a b='" * 9_000,
    "comments": "<!--" * 14_000,
    "declarations": "<!A " * 14_000,
    "instructions": "<?" * 28_000,
    "cdata": "<![CDATA[" * 6_000,
    "auto_links": "<a:" * 18_000,
    "entities": "&" * 58_000,
    "entity_digits": "&#" * 28_000,
    "entity_words": "&amp;" * 11_000,
    "back_slashes": "\\" * 58_000,
    "data_pictures": "data:image/png;base64," + "A" * 58_000,
    "data_many": "data:image/png;base64,AAAA " * 2_100,
    "underlines": "a\n=\n" * 14_000,
    "bars": "-|" * 28_000,
    "rows": "|\n" * 28_000,
    "dashes": "|a\n|" + "-" * 56_000 + "x\n",
}

# Refused by the intake, whatever else is in them.
_ALL_TABLE = ("wide_table", "table_rows", "rows", "dashes")
# What the suite reads as well: each kind once.
_SUITE = {
    *(
        "yaml_laughs",
        "yaml_cycle",
        "yaml_apply",
        "yaml_deep",
        "yaml_escape",
        "yaml_number",
        "yaml_signal",
        "yaml_cause",
    ),
    *("prose_numbers", "prose_spaced_lines", "prose_points", "prose_wide"),
    *(
        "markdown_brackets",
        "markdown_tables",
        "markdown_data_many",
        "markdown_tags",
        "markdown_rows",
        "markdown_dashes",
    ),
}

ATTACKS = (
    *(Attack(f"yaml_{what}", "reader", f"YAML: {says}", Expected(("graded",), because,
        gains_over="reference"), _matter(text), in_suite=f"yaml_{what}" in _SUITE) for what, (says, because,
        text) in _MATTER.items()),
    *(Attack(f"prose_{what}", "reader", f"a text without an end: {what.replace('_', ' ')}", _NOTHING_GAINED,
        _body(text), in_suite=f"prose_{what}" in _SUITE) for what, text in _PROSE.items()),
    *(Attack(f"markdown_{what}", "reader", f"Markdown without an end: {what.replace('_', ' ')}",
        _LARGE if what in _ALL_TABLE else _NOTHING_GAINED, _body(text),
        in_suite=f"markdown_{what}" in _SUITE) for what, text in _MARKDOWN.items()),
    Attack("report_10_mb", "reader", "a report of 10 MB", _LARGE, _body("word " * 2_000_000)),
    Attack("report_one_word", "reader", "one word of 8 MB", _LARGE, _body("a" * 8_000_000)),
    Attack("report_not_utf8", "reader", "a report that is no text", _NOTHING_GAINED,
        lambda base: base.with_members(base.reference, {"report.md": b"---\n\xff\xfe\n---\n\xff" * 4000},
        student="x")),
)  # fmt: skip
