"""Make untrusted text safe for pages and terminals, and render pages from templates.

Safe text contains no invisible characters, and no characters that change the direction or the place of other text.
"""

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from grader.score.verdict import Lateness
from harness.page.run_page import TEMPLATES as RUN_TEMPLATES
from harness.page.run_page import content_policy, page_environment
from harness.submission.document import visible

MISSING = "\N{EM DASH}"

# `_SAFE` matches lower-case names that are safe file names on every system. `_RESERVED` matches names that Windows does
# not allow, and names of our own pages.
_SAFE = re.compile(r"[a-z0-9_][a-z0-9._-]{0,98}[a-z0-9_-]|[a-z0-9_]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?|index|similar")
_DERIVED = re.compile(r".*-[0-9a-f]{16}", re.DOTALL)


LINES, COLUMNS = (
    1000,
    300,
)  # the limits for a source on a page; an experiment has about 90 lines, but a hostile file may be huge
TEMPLATES = Path(__file__).parent / "templates"
# Every page contains this tag in its head, so that `write_reports` recognizes its own pages.
MARKER = '<meta name="generator" content="trainwreck grader">'


def clip(text: str, limit: int) -> str:
    """Return the first `limit` characters of a text on one line, with codes instead of hidden characters.

    If the text is longer, the result says how many characters are left out.
    """
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} more characters)"
    return visible(text).replace("\n", " ").replace("\t", " ")


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 case" or "2 cases"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def points(value: float | None) -> str:
    """Return points as text without trailing zeros, or a dash if the points are open."""
    return MISSING if value is None else f"{round(value, 2):g}"


def late_words(late: Lateness | None) -> str:
    """Return a sentence that says how late a submission is and how many points this costs; "" if it is not late."""
    if late is None:
        return ""
    return f"{late.days} {'day' if late.days == 1 else 'days'} late: minus {points(late.cost)} points."


def tenths(value: float | None) -> str:
    """Return a mean with one decimal, or a dash if there is no mean."""
    return MISSING if value is None else f"{value:.1f}"


def file_stem(name: str) -> str:
    """Return a safe file name, without suffix, for the page of the submission `name`. It depends only on `name`.

    A lower-case name of safe characters is returned unchanged. From any other name, the result has the safe characters
    and 16 hexadecimal digits of the SHA-256 of the name. So names that differ only in case get different files on every
    file system. A name that already ends in 16 such digits is hashed, too, so that no student can choose the file name
    of another student's page.
    """
    if _SAFE.fullmatch(name) and not _RESERVED.fullmatch(name) and not _DERIVED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "submission"
    return f"{readable}-{digest[:16]}"


def plain_lines(source: str) -> list[str]:
    """Return the lines of a source file for a page, with codes instead of hidden characters, and cut to `LINES`."""
    lines = visible(source).removesuffix("\n").split("\n") if source else []
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} …" for line in lines[:LINES]]
    if len(lines) > LINES:
        cut.append(f"… {len(lines) - LINES} more lines")
    return cut


def source_diff(broken: str, fixed: str) -> list[str]:
    """Return the lines of a unified diff without file names. Ignore differences in line endings."""
    return list(difflib.unified_diff(plain_lines(broken), plain_lines(fixed), lineterm=""))[2:]


def render(template: str, context: Mapping[str, Any], **options: Any) -> str:
    """Return a page as HTML. The parameters are those that `render_pieces` describes."""
    return "".join(render_pieces(template, context, **options))


def render_pieces(
    template: str, context: Mapping[str, Any], *, script: str | None = None, pictures: bool = False, forms: str = ""
) -> Iterator[str]:
    """Return a page as HTML in pieces of a few lines, with codes instead of hidden characters.

    script: the file of `templates/` that the page runs as its only script; with None, the page runs no script.
    pictures: whether the page may show images whose bytes are inside the page. No page may load other files.
    forms: the additional style sheet of a page with forms; "" forbids forms. Forms can be sent only to the page's
    server.
    """
    style = _source("run.css", RUN_TEMPLATES) + _source("report.css", TEMPLATES)
    style += _source(forms, TEMPLATES) if forms else ""
    code = _source(script, TEMPLATES) if script else ""
    policy = content_policy(style, code, pictures=pictures, forms=bool(forms))
    environment = page_environment(TEMPLATES, RUN_TEMPLATES, finalize=_finalize)
    environment.filters |= {"points": points, "tenths": tenths, "clipped": clip}
    # These texts may be inserted without escaping, because they are ours and contain no closing tag.
    own = {"style": Markup(style), "script": Markup(code), "marker": Markup(MARKER), "missing": MISSING}
    pieces = environment.get_template(template).stream({**context, **own, "policy": policy})
    pieces.enable_buffering()
    return pieces


def pill(words: str, kind: str) -> Markup:
    """Return a few words as a coloured label. kind: "good", "bad" or "warn"."""
    return Markup('<span class="pill {}">{}</span>').format(kind, words)


def _finalize(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _source(name: str, folder: Path) -> str:
    return (folder / name).read_text(encoding="utf-8")
