"""Render a page: templates that escape everything, one style sheet, a policy that lets nothing else in."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from grader.report.text import MISSING, clipped, points, tenths
from harness.page.run_page import TEMPLATES as RUN_TEMPLATES
from harness.page.run_page import page_environment
from harness.submission.document import visible

TEMPLATES = Path(__file__).parent / "templates"

# In the head of every page. `write_reports` recognizes its own pages by it.
MARKER = '<meta name="generator" content="trainwreck grader">'


def render(
    template: str, context: Mapping[str, Any], *, script: str | None = None, pictures: bool = False
) -> str:
    """Return a page as HTML, in which hidden characters are spelled out.

    script: the one file of `templates/` that may run as a script; with None no script runs.
    pictures: allow pictures whose bytes stand in the page itself. No page ever loads anything.

    The content security policy allows style and script by their SHA-256, so nothing else could act if it got in.
    """
    style = _source("run.css", RUN_TEMPLATES) + _source("report.css", TEMPLATES)
    code = _source(script, TEMPLATES) if script else ""
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src {_hash_of(style)}"
    policy += f"; script-src {_hash_of(code)}" if code else ""
    policy += "; img-src data:" if pictures else ""
    environment = page_environment(TEMPLATES, RUN_TEMPLATES, finalize=_finalize)
    environment.filters |= {"points": points, "tenths": tenths, "clipped": clipped}
    # Safe to insert unescaped: these files are ours and hold no closing tag.
    own = {"style": Markup(style), "script": Markup(code), "marker": Markup(MARKER), "missing": MISSING}
    return environment.get_template(template).render({**context, **own, "policy": policy})


def pill(words: str, kind: str) -> Markup:
    """Return a few words as a coloured label; kind: good, bad or warn."""
    return Markup('<span class="pill {}">{}</span>').format(kind, words)


def _finalize(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _source(name: str, folder: Path) -> str:
    return (folder / name).read_text(encoding="utf-8")


@cache
def _hash_of(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"
