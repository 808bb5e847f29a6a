"""Render a page: templates that escape everything, one style sheet, a policy that lets nothing else in."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import harness.page
from grader.report.text import MISSING, clipped, points, tenths, visible

TEMPLATES = Path(__file__).parent / "templates"
_RUN_TEMPLATES = Path(harness.page.__file__).parent / "templates"

# In the head of every page. `write_reports` recognizes its own pages by it.
MARKER = '<meta name="generator" content="trainwreck grader">'


def render(
    template: str, context: Mapping[str, Any], *, script: str | None = None, pictures: bool = False
) -> str:
    """Return a page as HTML.

    script: the one file of `templates/` that may run as a script; with None no script runs.
    pictures: allow pictures whose bytes stand in the page itself. No page ever loads anything.

    The content security policy allows style and script by their SHA-256, so nothing else could act if it got in.
    """
    style = _source("run.css", _RUN_TEMPLATES) + _source("report.css", TEMPLATES)
    code = _source(script, TEMPLATES) if script else ""
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + _hash_of(style)
    if code:
        policy += "; script-src " + _hash_of(code)
    if pictures:
        policy += "; img-src data:"
    # Safe to insert unescaped: these files are ours and hold no closing tag.
    own = {"style": Markup(style), "script": Markup(code), "marker": Markup(MARKER)}
    return _environment().get_template(template).render({**context, **own, "policy": policy})


@cache
def _environment() -> Environment:
    """Return the environment: it escapes each value, spells out hidden characters, refuses unknown names."""
    result = Environment(
        loader=FileSystemLoader((TEMPLATES, _RUN_TEMPLATES)),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    result.filters |= {"points": points, "tenths": tenths, "clipped": clipped}
    result.globals["missing"] = MISSING
    return result


def _finalize(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _source(name: str, folder: Path) -> str:
    return (folder / name).read_text(encoding="utf-8")


@cache
def _hash_of(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"
