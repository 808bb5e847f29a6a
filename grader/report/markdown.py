"""Render a student's report as safe HTML, which loads no other files. Scoring reads the same Markdown tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from grader.report.text import clip
from harness.errors import UserError
from harness.submission.document import EMBEDDED, visible
from harness.submission.report import body_of, split_report

_LINKS = {"http", "https", "mailto"}  # the allowed schemes of links
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}  # fmt: skip


@dataclass(frozen=True)
class ShownReport:
    """A report for a page.

    matter: the front matter as text. body: the text below the front matter as HTML. cut: the number of characters of
    the body that were left out.
    """

    matter: str
    body: Markup
    cut: int


def shown_report(text: str) -> ShownReport:
    """Return the safe HTML of a report, whatever the report contains.

    The HTML has no scripts, styles or ids. All links are web or mail links. Images whose bytes are inside the report
    are shown; for any other image, only its address is shown. Two steps make the HTML safe: the parser escapes HTML in
    the report, and `cleaned_html` removes unsafe parts from the output of the renderer.
    """
    try:
        matter = split_report(text, "report.md")[0]
    except UserError:
        matter = ""
    body = body_of(text)
    html = _Renderer().render(body.tokens, MarkdownIt("commonmark").options, {})
    return ShownReport(visible(matter), Markup(cleaned_html(html)), body.cut)


def cleaned_html(html: str) -> str:
    """Return the HTML without tags and attributes that are not allowed, whatever the input is."""
    return nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags=set(),
        attributes={"*": set(), "a": {"href"}, "img": {"alt", "src"}, "ol": {"start"}},
        attribute_filter=_allowed_value,
        set_tag_attribute_values={"th": {"scope": "col"}},
        url_schemes={*_LINKS, "data"},
        url_relative="deny",
        link_rel="nofollow noopener noreferrer",
    )


def _allowed_value(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "href":
        return value if value.partition(":")[0].lower() in _LINKS else None
    return value if attribute != "src" or EMBEDDED.fullmatch(value) else None


class _Renderer(RendererHTML):
    """Renders headings and images for our pages. Each method renders the tokens whose type is the method's name."""

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_heading_tag(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_heading_tag(tokens[idx])}>\n"

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        address = str(tokens[idx].attrs["src"])
        if not EMBEDDED.fullmatch(address):
            return str(escape(f"[picture: {clip(address, 80)}]"))
        alternative = self.renderInlineAsText(tokens[idx].children or [], options, env)
        described = escape(clip(alternative or "an image in the report", 300))
        return f'<img alt="{described}" src="{address}">'


def _heading_tag(token: Token) -> str:
    """Return the tag of a heading, two levels lower, because the page puts the report under a heading of level 2."""
    return f"h{min(6, int(token.tag[1]) + 2)}"
