"""What pages and terminals show: untrusted text made safe, pages from templates, a bar for the replays.

Safe text holds nothing invisible, and nothing that moves the text beside it.
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

# A lower-case name that is a safe file name everywhere. Windows takes no file with one of the reserved names.
_SAFE = re.compile(r"[a-z0-9_][a-z0-9._-]{0,98}[a-z0-9_-]|[a-z0-9_]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?|index|similar")
_DERIVED = re.compile(r".*-[0-9a-f]{16}", re.DOTALL)


LINES, COLUMNS = 1000, 300  # an experiment has about 90 lines; a hostile one must not make the page grow
# Replays end in bursts, as many at a time as run in parallel: estimate the time left over some minutes.
TEMPLATES = Path(__file__).parent / "templates"
# In the head of every page. `write_reports` recognizes its own pages by it.
MARKER = '<meta name="generator" content="trainwreck grader">'


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of `visible(text)` on one line, with a note of how many are left out."""
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text) - limit} more characters)"
    return visible(text).replace("\n", " ").replace("\t", " ")


def count_noun(number: int, noun: str) -> str:
    """Return "1 case" or "2 cases"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def points(value: float | None) -> str:
    """Return points without needless zeros, or a dash for points that are open."""
    return MISSING if value is None else f"{round(value, 2):g}"


def late_words(late: Lateness | None) -> str:
    """Return how late something is and what that costs, as a sentence, or ""."""
    if late is None:
        return ""
    return f"{late.days} {'day' if late.days == 1 else 'days'} late: {points(late.cost)} points less."


def tenths(value: float | None) -> str:
    """Return a mean with one decimal, or a dash if there is no mean."""
    return MISSING if value is None else f"{value:.1f}"


def file_stem(name: str) -> str:
    """Return a safe file name, without ending, for a submission called `name`, whatever else is in the class.

    A plain lower-case name stays. Any other name becomes its safe characters and 16 hexadecimal digits of its
    SHA-256, so names that differ only in case stay apart on every file system. A name that looks derived is
    derived again: no student can choose the file name of another one's page.
    """
    if _SAFE.fullmatch(name) and not _RESERVED.fullmatch(name) and not _DERIVED.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "submission"
    return f"{readable}-{digest[:16]}"


def plain_lines(source: str) -> list[str]:
    """Return the lines of a source as a page shows them: hidden characters spelled out, cut to a bounded size."""
    lines = visible(source).removesuffix("\n").split("\n") if source else []
    cut = [line if len(line) <= COLUMNS else f"{line[:COLUMNS]} …" for line in lines[:LINES]]
    if len(lines) > LINES:
        cut.append(f"… {len(lines) - LINES} more lines")
    return cut


def source_diff(broken: str, fixed: str) -> list[str]:
    """Return the lines of a unified diff, without the names of files; line endings of another kind are equal."""
    return list(difflib.unified_diff(plain_lines(broken), plain_lines(fixed), lineterm=""))[2:]


def render(template: str, context: Mapping[str, Any], **options: Any) -> str:
    """Return a page as HTML; see `render_pieces`."""
    return "".join(render_pieces(template, context, **options))


def render_pieces(
    template: str, context: Mapping[str, Any], *, script: str | None = None, pictures: bool = False, forms: str = ""
) -> Iterator[str]:
    """Return a page as HTML, in which hidden characters are spelled out, in pieces of some lines.

    script: the one file of `templates/` that may run as a script; with None no script runs.
    pictures: allow pictures whose bytes stand in the page itself. No page ever loads anything.
    forms: the style sheet of a page whose forms may be sent to where the page is from; with "" there are none.
    """
    style = _source("run.css", RUN_TEMPLATES) + _source("report.css", TEMPLATES)
    style += _source(forms, TEMPLATES) if forms else ""
    code = _source(script, TEMPLATES) if script else ""
    policy = content_policy(style, code, pictures=pictures, forms=bool(forms))
    environment = page_environment(TEMPLATES, RUN_TEMPLATES, finalize=_finalize)
    environment.filters |= {"points": points, "tenths": tenths, "clipped": clip}
    # Safe to insert unescaped: these files are ours and hold no closing tag.
    own = {"style": Markup(style), "script": Markup(code), "marker": Markup(MARKER), "missing": MISSING}
    pieces = environment.get_template(template).stream({**context, **own, "policy": policy})
    pieces.enable_buffering()
    return pieces


def pill(words: str, kind: str) -> Markup:
    """Return a few words as a coloured label; kind: good, bad or warn."""
    return Markup('<span class="pill {}">{}</span>').format(kind, words)


def _finalize(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _source(name: str, folder: Path) -> str:
    return (folder / name).read_text(encoding="utf-8")
