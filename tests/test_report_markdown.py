import re

import pytest
from helpers.made_up_class import HOSTILE, REPORT
from helpers.page_reader import Page

from grader.report.markdown import cleaned_html, shown_report

ALLOWED = {
    *("a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul", "div"),
}


def page_of(markdown: str) -> Page:
    return Page(f"<div>{shown_report(markdown).body}</div>")


def assert_harmless(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag in ALLOWED, tag
        assert set(attributes) <= {"href", "rel", "start", "scope"}, (tag, attributes)
        if "href" in attributes:
            assert re.match(r"(https?:|mailto:)", attributes["href"] or ""), attributes
        if tag == "a":
            assert attributes["rel"] == "nofollow noopener noreferrer"


def test_a_model_report() -> None:
    report = shown_report(REPORT)
    assert report.matter.startswith("diagnosis:\n  - {cause: steep, where: build_optimizer")
    assert report.cut == 0
    page = Page(f"<div>{report.body}</div>")
    assert_harmless(page)
    assert page.levels == [3, 3, 3, 3]
    assert len(page.all("table")) == len(page.all("pre")) == len(page.all("ol")) == 1
    assert "[picture: runs/fixed/run.html]" in page.words
    assert "ruled_out" not in page.words


@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("<svg><a xlink:href='javascript:alert(1)'>x</a></svg>", "xlink:href"),
        ("[x](JaVaScRiPt&colon;alert(1))", "x"),
        ("[x](ada_huge_lr.html)", "x"),
        ("[x](#score)", "x"),
        ("![alt](https://evil.example/pixel.png)", "[picture: https://evil.example/pixel.png]"),
        ("![](data:image/svg+xml;base64,PHN2Zz4=)", "![](data:image/svg+xml;base64,PHN2Zz4=)"),
        ("![](data:image/png;base64,PHN2Zz4=)", "[picture: data:image/png;base64,PHN2Zz4=]"),
        ("[x](data:image/png;base64,AAAA)", "x"),
        ("<data:image/png;base64,AAAA>", "data:image/png;base64,AAAA"),
        ('[x](https://ok.example "t\\" onclick=\\"alert(1)")', "x"),
        ("```html\n</code></pre><script>alert(1)</script>\n```", "</code></pre><script>"),
        ("\u202etxt.exe\x1b[31m", "<U+202E>txt.exe<U+001B>[31m"),
        (HOSTILE, '</title></style><script>alert("1")</script>'),
    ],
)
def test_hostile_markdown_is_text(markdown: str, words: str) -> None:
    page = page_of(markdown)
    assert_harmless(page)
    assert words in page.words


@pytest.mark.parametrize(
    "html",
    [
        '<a href="data:text/html,<script>alert(1)</script>">x</a>',
        '<a href="data:image/png;base64,AAAA">x</a>',
        '<a href="java\nscript:alert(1)">x</a>',
        '<a href="//evil.example">x</a>',
        '<a href="index.html" ping="https://evil.example" id="x" style="x">x</a>',
        '<p>x<img alt="a" src="https://evil.example/x.png"><img src="data:image/svg+xml;base64,AAAA"></p>',
        '<p>x<img src="data:image/png;base64,AAAA"></p>',
        "<form><input></form><iframe></iframe><script>x</script><style>x</style>x",
    ],
)
def test_the_second_guard_trusts_nothing_of_the_first(html: str) -> None:
    page = Page(f"<div>{cleaned_html(html)}</div>")
    for tag, attributes in page.tags:
        assert tag in ALLOWED | {"img"}
        assert set(attributes) <= {"rel", "alt"}
    assert "x" in page.words


def test_a_picture_that_the_report_holds_is_shown_and_no_other() -> None:
    data = "A" * 100
    png, svg = f"data:image/png;base64,iVBORw0KGgo{data}", f"data:image/svg+xml;base64,{data}"
    page = page_of(f"![the loss]({png})")
    assert page.all("img") == [{"alt": "the loss", "src": png}]
    page = page_of(
        f"![a]({svg}) [b]({png}) ![c](embedded-picture-9) ![d](https://evil.example/x.png) <img src='{png}'>"
        f' ![x" onerror="alert(1)]({png})'
    )
    assert page.all("img") == [{"alt": 'x" onerror="alert(1)', "src": png}]
    assert all("href" not in attributes for attributes in page.all("a"))


def test_the_front_matter_is_text_and_a_report_without_one_is_all_body() -> None:
    report = shown_report("---\na: 12\u202e\n---\n# B")
    assert (report.matter, report.body) == ("a: 12<U+202E>", "<h3>B</h3>\n")
    assert shown_report("a: 12").body == "<p>a: 12</p>\n"
