"""Show a student's report: Markdown as sanitized HTML that loads nothing, with looked-up numbers marked."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from grader.report.text import clipped, visible
from grader.score.exhibits import CitedNumber
from harness.errors import UserError
from harness.submission.report import split_report

# Characters: 500 words are about 4,000; tables and snippets come on top. The parser's time grows with the square of
# some texts: with this length the worst of those in the tests takes half a second.
LIMIT = 20_000

# A picture inside the report. Only formats that hold pixels and nothing else; an SVG is a program.
_EMBEDDED = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]{64,}={0,2}")
_PLACE = re.compile(r"embedded-picture-(\d{1,4})")
# Any other address with data in it.
_OTHER_DATA = re.compile(r"(data:[\w.+/;=-]{0,80},)([A-Za-z0-9+/=%]{64,})")
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)  # what a link may lead to
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol", "p", "pre", "s"),
    *("strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}  # fmt: skip

# Private-use characters around a number that was looked up; in the finished HTML they become <mark>.
_OPENING = {"verified": "\ue000", "refuted": "\ue001"}
_CLOSING = "\ue002"
_OURS = re.compile("[\ue000-\ue002]")
_MARKED = re.compile("([\ue000\ue001])([^\ue000-\ue002<>]*)\ue002")


@dataclass(frozen=True)
class ShownReport:
    """A report as a page shows it: its front matter as text, its body, and how many characters are left out."""

    matter: str
    body: Markup
    cut: int


def shown_report(text: str, numbers: Iterable[CitedNumber] = ()) -> ShownReport:
    """Return what a page shows of a report, whatever it contains; `numbers` are marked in its body."""
    pictures: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        pictures.append(match[0])
        return f"embedded-picture-{len(pictures) - 1}"

    # Without their bytes, so a picture does not push the words after it over the limit.
    text = _EMBEDDED.sub(put_aside, visible(_with_marks(text, numbers)))
    text = _OTHER_DATA.sub(lambda match: f"{match[1]}…", text)
    kept = text[:LIMIT]
    try:
        matter, body = split_report(kept, "report.md")
    except UserError:
        matter, body = "", kept
    return ShownReport(_OURS.sub("", matter), safe_html(body, pictures), len(text) - len(kept))


def safe_html(markdown: str, pictures: Sequence[str] = ()) -> Markup:
    """Return Markdown as HTML without scripts, styles, ids, or links to anything but web and mail.

    HTML in it is shown as text. `pictures` are those that the report itself holds; the text has
    `embedded-picture-<index>` for each. Any other picture is replaced by its description and address. Two guards stand
    behind each other: the parser makes no HTML out of HTML, and `cleaned_html` cleans what the parser made.
    """
    html = cleaned_html(_parser().render(markdown, {"pictures": pictures}))
    verdicts = {character: verdict for verdict, character in _OPENING.items()}
    html = _MARKED.sub(lambda match: f'<mark class="{verdicts[match[1]]}">{match[2]}</mark>', html)
    return Markup(_OURS.sub("", html))


def cleaned_html(html: str) -> str:
    """Return HTML with nothing but allowed tags and attributes in it, whatever the input is."""
    return nh3.clean(
        html,
        tags=_TAGS,
        clean_content_tags=set(),
        attributes={"*": set(), "a": {"href"}, "img": {"alt", "src"}, "ol": {"start"}},
        attribute_filter=_allowed_value,
        set_tag_attribute_values={"th": {"scope": "col"}},
        url_schemes={"http", "https", "mailto", "data"},
        url_relative="deny",
        link_rel="nofollow noopener noreferrer",
    )


def _with_marks(text: str, numbers: Iterable[CitedNumber]) -> str:
    """Return the text with our characters around each number; the student's own such characters are replaced."""
    text = _OURS.sub("\ufffd", text)
    for one in sorted(numbers, key=lambda one: one.start, reverse=True):
        text = f"{text[: one.start]}{_OPENING[one.verdict]}{text[one.start : one.end]}{_CLOSING}{text[one.end :]}"
    return text


def _allowed_value(tag: str, attribute: str, value: str) -> str | None:
    """Return an attribute's value without marks, which belong to text; None for an address that is not allowed."""
    allowed = {"src": _EMBEDDED.fullmatch, "href": _LINK.match}.get(attribute)
    return _OURS.sub("", value) if allowed is None or allowed(value) else None


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("image", _picture)
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _picture(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    alternative = self.renderInlineAsText(token.children or [], options, env)
    address = _OURS.sub("", str(token.attrs.get("src", "")))
    place = _PLACE.fullmatch(address)
    if place and int(place[1]) < len(env["pictures"]):
        described = escape(clipped(alternative or "a picture of the report", 300))
        return f'<img alt="{described}" src="{env["pictures"][int(place[1])]}">'
    words = f"[picture: {alternative or 'no description'} ({address})]"
    return str(escape(clipped(words, 300)))


def _lower_headings(state: object) -> None:
    for token in getattr(state, "tokens", ()):
        if token.type in ("heading_open", "heading_close"):  # the report stands under a heading of level 2
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
