"""Render a student's report as sanitized HTML that loads nothing, from the same tokens that the scoring reads."""

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
    """A report for a page: its front matter as text, its body as HTML, and the number of left-out characters."""

    matter: str
    body: Markup
    cut: int


def shown_report(text: str) -> ShownReport:
    """Return the safe HTML of a report, whatever the report contains.

    The body has no scripts, styles or ids, and only web and mail links. It shows images that are inside the report,
    and only the address of all others. There are two guards: the parser escapes HTML in the report, and `cleaned_html`
    cleans the output of the renderer.
    """
    try:
        matter = split_report(text, "report.md")[0]
    except UserError:
        matter = ""
    body = body_of(text)
    html = _Renderer().render(body.tokens, MarkdownIt("commonmark").options, {})
    return ShownReport(visible(matter), Markup(cleaned_html(html)), body.cut)


def cleaned_html(html: str) -> str:
    """Return the HTML with only the allowed tags and attributes, whatever the input is."""
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
    """Renders headings and images for our pages. Each method handles the tokens with its name."""

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
    """Return the tag of a heading, two levels lower, because the report is below a heading of level 2."""
    return f"h{min(6, int(token.tag[1]) + 2)}"
