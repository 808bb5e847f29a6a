"""A student's report: its front matter as a table, its Markdown as sanitized HTML that loads nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import table as table_rule
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from grader.report.text import clipped, visible
from harness.errors import UserError
from harness.plain_yaml import Plain
from harness.submission.front_matter import parse_front_matter, split_report

# Characters: 500 words are about 4,000, and tables and snippets come on top. The time that the parser takes
# grows with the square of some texts: at this length the worst of those in the tests takes half a second.
LIMIT = 20_000
# The cells that a table may have, were every line below its head a row: a row of one letter becomes as many cells
# as the head has, so that 20 KB of text would become 800 KB of page. A larger table is shown as text.
TABLE_LIMIT = 5_000

# A picture written into the report: its bytes would push the words after it over the limit. Formats that hold
# pixels and nothing else; an SVG is a program.
_EMBEDDED = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]{64,}={0,2}")
_PLACE = re.compile(r"embedded-picture-(\d{1,4})")
# What a link may lead to.
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
# Any other address with data in it.
_OTHER_DATA = re.compile(r"(data:[\w.+/;=-]{0,80},)([A-Za-z0-9+/=%]{64,})")
_TAGS = {
    *("a", "blockquote", "br", "code", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s"),
    *("img", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_TOP_LEVEL = 3  # the report stands under a heading of level 2


@dataclass(frozen=True)
class ShownReport:
    """A report as a page shows it.

    `facts` are the entries of the front matter, and `evidence` its cited numbers under `columns`; a front
    matter that cannot be read so is in `matter`, as text. `cut` says how many characters are left out.
    """

    facts: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    evidence: tuple[tuple[str, ...], ...]
    matter: str
    body: Markup
    cut: int


def shown_report(text: str) -> ShownReport:
    """Return what a page shows of a report, whatever stands in it."""
    pictures: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        pictures.append(match[0])
        return f"embedded-picture-{len(pictures) - 1}"

    text = _EMBEDDED.sub(put_aside, visible(text))
    text = _OTHER_DATA.sub(lambda match: f"{match[1]}…", text)
    kept = text[:LIMIT]
    try:
        matter, body, _ = split_report(kept, "report.md")
    except UserError:
        matter, body = "", kept
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    evidence: tuple[tuple[str, ...], ...] = ()
    try:
        values = parse_front_matter(matter, "report.md").values if matter else {}
        columns, evidence = _evidence(values.pop("evidence", None))
        facts = tuple((key, _scalar(value)) for key, value in values.items())
        matter = ""
    except (UserError, _NotATableError):
        columns, evidence = (), ()
    return ShownReport(facts, columns, evidence, matter, safe_html(body, pictures), len(text) - len(kept))


def safe_html(markdown: str, pictures: Sequence[str] = ()) -> Markup:
    """Return Markdown as HTML without scripts, styles, ids, or links to other than the web and mail.

    HTML in it is shown as text. Of pictures only those are shown that the report holds itself: `pictures` are
    their addresses, and the text has `embedded-picture-<index>` for each; any other is replaced by its
    description and its address.
    Two guards stand one behind the other: the parser makes no HTML out of HTML, and what it made is then
    cleaned by a list of what is allowed.
    """
    return cleaned_html(_parser().render(markdown, {"pictures": pictures}))


def cleaned_html(html: str) -> Markup:
    """Return HTML with nothing in it but what is allowed: the second guard, which trusts nothing of the first."""
    return Markup(
        nh3.clean(
            html,
            tags=_TAGS,
            clean_content_tags=set(),
            attributes={"*": set(), "a": {"href"}, "img": {"alt", "src"}, "ol": {"start"}},
            attribute_filter=_allowed_address,
            set_tag_attribute_values={"th": {"scope": "col"}},
            url_schemes={"http", "https", "mailto", "data"},
            url_relative="deny",
            link_rel="nofollow noopener noreferrer",
        )
    )


def _allowed_address(tag: str, attribute: str, value: str) -> str | None:
    allowed = {"src": _EMBEDDED.fullmatch, "href": _LINK.match}.get(attribute)
    return value if allowed is None or allowed(value) else None


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _small_table, {"alt": ["paragraph", "reference"]})
    parser.add_render_rule("image", _picture)
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _small_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if start + 1 < end:
        columns = state.src.count("|", state.bMarks[start + 1], state.eMarks[start + 1]) + 1
        if columns * (end - start) > TABLE_LIMIT:
            return False
    return table_rule(state, start, end, silent)


def _picture(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    token = tokens[index]
    alternative = self.renderInlineAsText(token.children or [], options, env)
    place = _PLACE.fullmatch(str(token.attrs.get("src", "")))
    if place and int(place[1]) < len(env["pictures"]):
        described = escape(clipped(alternative or "a picture of the report", 300))
        return f'<img alt="{described}" src="{env["pictures"][int(place[1])]}">'
    words = f"[picture: {alternative or 'no description'} ({token.attrs.get('src', '')})]"
    return str(escape(clipped(words, 300)))


def _lower_headings(state: object) -> None:
    for token in getattr(state, "tokens", ()):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _TOP_LEVEL - 1)}"


class _NotATableError(Exception):
    """The front matter is YAML of another shape than the template's."""


def _scalar(value: Plain) -> str:
    if isinstance(value, list | dict):
        raise _NotATableError
    return "" if value is None else value


def _evidence(value: Plain) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the pieces of evidence; each piece has its own keys."""
    pieces = value if isinstance(value, list) else [] if value is None else [value]
    rows = []
    for piece in pieces:
        if not isinstance(piece, dict):
            raise _NotATableError
        rows.append({key: _scalar(item) for key, item in piece.items()})
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    return columns, tuple(tuple(row.get(column, "") for column in columns) for row in rows)
