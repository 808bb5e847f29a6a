"""The grader reads, counts and judges exactly the text that a report's page shows."""

import re
import unicodedata

import pytest
from helpers.page_reader import Page
from hypothesis import example, given
from hypothesis import strategies as st

from grader.report.markdown import shown_report
from harness.submission.document import LIMIT, read_body, visible

FRONT = "---\n---\n"
PNG = "data:image/png;base64,iVBORw0KGgo" + "A" * 100


@pytest.mark.parametrize(
    ("text", "words", "sections"),
    [
        ("# A\nx\n# B\ny\n# C\nz\n# D\nw\n", 8, 4),
        ("#### Symptom\nx\n\nUrsache\n=======\ny\n\n**修复**\n\nz\n\n__Prüfung__:\nw\n", 9, 4),
        ("# A\n\n**b** c\n\n> # D\n> e\n", 5, 2),
        ("one - two , 3", 3, 0),
        ("学习率太大 `loss`损失", 8, 0),
        ("# A\n\n```\nsome code\n```\n", 1, 1),
        ("# A\n\n    indented code\n    more\n\nprose\n", 2, 1),
        ("# A\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", 1, 1),
        ("one\ntwo\n- three\n- four\n", 4, 0),
        ("- ```\n  code in a list\n  ```\n", 0, 0),
        ("<!-- HTML is text -->\n<div hidden>so</div>\n", 5, 0),
        ("```\nno end", 0, 0),
        ("# A\n\n[r]: https://x.example 'a title'\n# B\n![a picture](x.png)\n# C\n[](y)\n", 3, 0),
    ],
)
def test_a_body_has_words_and_sections(text: str, words: int, sections: int) -> None:
    body = read_body(text)
    assert (body.words, body.filled_sections) == (words, sections)


# Each text contains a word that a reader of the page does not see, or sees only in parts.
UNSEEN = (
    "[x]: https://x.example 'verified'", "[x](https://x.example/verified 'verified')", "![verified](x.png)",
    f"![verified]({PNG})", "```verified\n```", "[x][verified]\n\n[verified]: /verified", "veri\u200bfied",
    "veri&#x200b;fied",
)  # fmt: skip
SEEN = (
    "verified", "**ver**ified", "`verified`", "verif&#105;ed", "[verified](x)", "~~verified~~",
    "<b hidden>verified</b>", "<!-- verified -->", "verified\n===",
    "- > 1. verified", "- ~~~\n  verified\n  ~~~", "|a|\n|-|\n|verified|",
    "x" * 5_000 + " verified",
)  # fmt: skip


@pytest.mark.parametrize("text", (*SEEN, *UNSEEN))
def test_a_word_counts_where_a_reader_sees_it(text: str) -> None:
    read = "".join(block.text for block in read_body(text).blocks)
    assert ("verified" in read) == (text in SEEN)


LOG_LINE = '{"step": 1, "epoch": 0, "loss": 31.84, "lr": 10.0}'
BOXES = "┏━━━━━━━━━━━━┳━━━━━━━┓\n│ first loss │ 2.302 │\n└────────────┴───────┘"
HONEST = {
    "log line in a fence": f"```json\n{LOG_LINE}\n```",
    "fence in a list": "1. first\n   ```\n   step 1 loss 31.84\n   ```",
    "fence without an end": f"~~~\n{LOG_LINE}",
    "indented": "It says\n\n    step 1 loss 31.84",
    "table": "|step|loss|\n|-|-|\n|1|31.84|",
    "table without outer bars": "step | loss\n--- | ---\n1 | 31.84",
    "quotation": "> step 1: 31.84",
    "harness show, pasted": "  - {run: broken, signal: loss, step: 1, value: 31.8425}",
    "log line, pasted": LOG_LINE,
    "log line, cut": "the loss is `" + LOG_LINE[:40] + "`",
    "table of a command": f"```\n{BOXES}\n```",
    "table of a command, pasted": BOXES,
    "only NaN": "```\nloss NaN\nval_loss NaN\n```",
    "program with a value": "```python\nloss.backward()  # loss is 31.84 here\n```",
    "tensor": "```\nloss: tensor(31.84)\n```",
    "accuracy of a class": "```\nclass 3: 0.12\n```",
}
EMPTY = {
    "nothing": "",
    "headings": "# Symptom\n\n# Root cause\n\n# Fix\n\n# Verification",
    "a number in prose": "The loss is 31.84 at step 1, and `loss` is high.",
    "empty fence": "```\n```",
    "fence without a value": "```\nTODO: the log\nmake verify BREAK=huge_lr\n```",
    "empty table": "|step|loss|\n|-|-|\n| | |",
    "numbered list": "1. see the log\n2. see the plot",
    "the fix": "```python\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n```",
    "the fix as a difference": "```diff\n-    return F.mse_loss(x, y) * 64\n+    return F.mse_loss(x, y)\n```",
    "braces in prose": "It trains with {lr, momentum} as before: 2 values.",
}


@pytest.mark.parametrize("name", [*HONEST, *EMPTY])
def test_a_snippet_shows_values_as_they_were_printed(name: str) -> None:
    assert bool(read_body((HONEST | EMPTY)[name]).value_lines) is (name in HONEST)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (PNG, True),
        ("data:image/png;base64," + "A" * 100, False),
        (PNG.replace("png", "svg+xml"), False),
        ("https://x.example/x.png", False),
        ("embedded-picture-0", False),
    ],
)
def test_a_picture_counts_if_the_page_shows_it(address: str, shown: bool) -> None:
    assert read_body(f"![the loss]({address})").shows_picture is shown
    assert ("<img" in shown_report(f"![the loss]({address})").body) is shown


CHARACTERS = st.sampled_from("[]()!<>&`*_~|-+#:;=1.\\ \n\t\"'ab") | st.characters(codec=None)
PIECES = st.text(CHARACTERS, max_size=8) | st.sampled_from(
    ("\n\n", "&#48;", "- ", "1. ", "> ", "```\n", "    ", "|a|\n|-|\n", "](x)", "[a]: b\n", "<!--", "\u202e")
)


@given(st.lists(PIECES, max_size=30).map("".join))
@example("**a**\n`b` | c\n\n|a|b|\n|-|-|\n|`c`|")
@example("&#x202e;&#8203;\0\ufffd")
def test_the_blocks_hold_what_the_page_shows_and_nothing_else(text: str) -> None:
    body, page = read_body(text), Page(f"<div>{shown_report(FRONT + text).body}</div>")
    read, shown = ("".join(piece) for piece in ((block.text for block in body.blocks), page.text))
    if not body.pictures:  # the page shows the addresses of pictures
        # Bars and back ticks mark the borders of cells and of code.
        assert re.sub(r"[\s|`]", "", read) == re.sub(r"[\s|`]", "", shown)


def test_a_text_beyond_the_limit_is_not_read() -> None:
    body = read_body("word " * LIMIT)
    assert (body.words, body.cut) == (LIMIT // 5, 4 * LIMIT)
    assert read_body(f"![p]({PNG + 'A' * LIMIT})\n\nafter it").cut == 0


def test_a_table_of_too_many_cells_is_text() -> None:
    rows = "a|b\n-|-\n" + "c|d\n" * 100
    assert read_body(rows).words == 0
    assert read_body("a" + "|a" * 99 + "\n-" + "|-" * 99 + "\n" + "c\n" * 100).words > 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("tab\tand\r\nline\nfeed", "tab\tand\nline\nfeed"),
        ("\x1b[31mred\x07", "<U+001B>[31mred<U+0007>"),
        ("\u202eevil\u2066", "<U+202E>evil<U+2066>"),
        ("zero\u200bwidth\ufeff", "zero<U+200B>width<U+FEFF>"),
        ("\ud800", "<U+D800>"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),  # Persian needs the joiner
        ("👩\u200d👩\u200d👧 ❤️", "👩\u200d👩\u200d👧 ❤️"),
        ("Zoë é e\u0301", "Zoë é e\u0301"),
        ("Z" + "\u0301" * 50 + "!", "Z" + "\u0301" * 4 + "…!"),
    ],
)
def test_hidden_characters_are_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


DIRECTIONS = ["LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI"]


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_has_no_control_or_direction_and_can_be_encoded(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    for character in shown:
        assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") or character in "\n\t"
        assert unicodedata.bidirectional(character) not in DIRECTIONS
    assert visible(shown) == shown
