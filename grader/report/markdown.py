"""Show a student's report: front matter as tables, Markdown as sanitized HTML that loads nothing."""

import re
from collections.abc import Iterable, Sequence
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
from grader.score.exhibits import CitedNumber
from harness.errors import UserError
from harness.plain_yaml import Plain
from harness.submission.report import parse_front_matter, split_report

# Characters: 500 words are about 4,000; tables and snippets come on top. The parser's time grows with the square of
# some texts: with this length the worst of those in the tests takes half a second.
LIMIT = 20_000
# The cells that a table may have if every line below its head were a row. A row of one letter becomes as many cells as
# the head has, so 20 KB of text could become 800 KB of page. A larger table is shown as text.
TABLE_LIMIT = 5_000

# A picture inside the report. Only formats that hold pixels and nothing else; an SVG is a program.
_EMBEDDED = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]{64,}={0,2}")
_PLACE = re.compile(r"embedded-picture-(\d{1,4})")
# Any other address with data in it.
_OTHER_DATA = re.compile(r"(data:[\w.+/;=-]{0,80},)([A-Za-z0-9+/=%]{64,})")
_LINK = re.compile(r"(?:https?|mailto):", re.IGNORECASE)  # what a link may lead to
_TAGS = {
    *(
        "a",
        "blockquote",
        "br",
        "code",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "mark",
        "ol",
        "p",
        "pre",
        "s",
    ),
    *("img", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_TOP_LEVEL = 3  # the report stands under a heading of level 2

# Private-use characters around a number that was looked up; the renderer turns them into <mark>.
_OPENING = {"verified": "\ue000", "refuted": "\ue001"}
_CLOSING = "\ue002"
_OURS = re.compile("[\ue000-\ue002]")
_MARKED = re.compile("([\ue000\ue001])([^\ue000-\ue002]*)\ue002")


@dataclass(frozen=True)
class Table:
    """A list of the front matter: its key, and its entries under columns."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class ShownReport:
    """A report as a page shows it.

    facts: the single values of the front matter; tables: its lists. A front matter of another shape stands in `matter`,
    as text. cut: how many characters are left out.
    """

    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
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
    matter = _OURS.sub("", matter)
    facts: tuple[tuple[str, str], ...] = ()
    tables: tuple[Table, ...] = ()
    try:
        values = parse_front_matter(matter, "report.md").values if matter else {}
        tables = tuple(_table(key, value) for key, value in values.items() if isinstance(value, list))
        facts = tuple((key, _scalar(value)) for key, value in values.items() if not isinstance(value, list))
        matter = ""
    except (UserError, _OtherShapeError):
        facts, tables = (), ()
    return ShownReport(facts, tables, matter, safe_html(body, pictures), len(text) - len(kept))


def safe_html(markdown: str, pictures: Sequence[str] = ()) -> Markup:
    """Return Markdown as HTML without scripts, styles, ids, or links to anything but web and mail.

    HTML in it is shown as text. `pictures` are those that the report itself holds; the text has
    `embedded-picture-<index>` for each. Any other picture is replaced by its description and address. Two guards stand
    behind each other: the parser makes no HTML out of HTML, and `cleaned_html` cleans what the parser made.
    """
    return cleaned_html(_parser().render(markdown, {"pictures": pictures}))


def cleaned_html(html: str) -> Markup:
    """Return HTML with nothing but allowed tags and attributes in it, whatever the input is."""
    return Markup(
        nh3.clean(
            html,
            tags=_TAGS,
            clean_content_tags=set(),
            attributes={"*": set(), "a": {"href"}, "img": {"alt", "src"}, "ol": {"start"}},
            tag_attribute_values={"mark": {"class": set(_OPENING)}},
            attribute_filter=_allowed_address,
            set_tag_attribute_values={"th": {"scope": "col"}},
            url_schemes={"http", "https", "mailto", "data"},
            url_relative="deny",
            link_rel="nofollow noopener noreferrer",
        )
    )


def _with_marks(text: str, numbers: Iterable[CitedNumber]) -> str:
    """Return the text with our characters around each number; the student's own such characters are replaced."""
    text = _OURS.sub("\ufffd", text)
    for one in sorted(numbers, key=lambda one: one.start, reverse=True):
        text = f"{text[: one.start]}{_OPENING[one.verdict]}{text[one.start : one.end]}{_CLOSING}{text[one.end :]}"
    return text


def _allowed_address(tag: str, attribute: str, value: str) -> str | None:
    allowed = {"src": _EMBEDDED.fullmatch, "href": _LINK.match}.get(attribute)
    return value if allowed is None or allowed(value) else None


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _small_table, {"alt": ["paragraph", "reference"]})
    parser.add_render_rule("image", _picture)
    for kind in ("text", "code_inline", "code_block", "fence"):
        parser.add_render_rule(kind, _marking(kind))
    parser.core.ruler.push("lower_headings", _lower_headings)
    return parser


def _marking(kind: str):  # type: ignore[no-untyped-def]  # the library has no name for its rules
    """Return the usual rule for a kind of token, with <mark> for our characters."""

    def render(
        self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
    ) -> str:
        html = getattr(RendererHTML, kind)(self, tokens, index, options, env)
        return _OURS.sub("", _MARKED.sub(_marked, html))

    return render


def _marked(match: re.Match[str]) -> str:
    verdict = next(name for name, character in _OPENING.items() if character == match[1])
    return f'<mark class="{verdict}">{match[2]}</mark>'


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
    alternative = _OURS.sub("", self.renderInlineAsText(token.children or [], options, env))
    address = _OURS.sub("", str(token.attrs.get("src", "")))
    place = _PLACE.fullmatch(address)
    if place and int(place[1]) < len(env["pictures"]):
        described = escape(clipped(alternative or "a picture of the report", 300))
        return f'<img alt="{described}" src="{env["pictures"][int(place[1])]}">'
    words = f"[picture: {alternative or 'no description'} ({address})]"
    return str(escape(clipped(words, 300)))


def _lower_headings(state: object) -> None:
    for token in getattr(state, "tokens", ()):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _TOP_LEVEL - 1)}"


class _OtherShapeError(Exception):
    """The front matter is YAML of another shape than that of a report."""


def _table(name: str, entries: list[Plain]) -> Table:
    """Return a list of mappings as a table; each entry may have its own keys."""
    rows = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise _OtherShapeError
        rows.append({key: _cell(value) for key, value in entry.items()})
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    return Table(name, columns, tuple(tuple(row.get(column, "") for column in columns) for row in rows))


def _cell(value: Plain) -> str:
    """Return a value, or a mapping of values as "signal loss, step 1"."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_scalar(item)}" for key, item in value.items())
    return _scalar(value)


def _scalar(value: Plain) -> str:
    if isinstance(value, list | dict):
        raise _OtherShapeError
    return "" if value is None else value
