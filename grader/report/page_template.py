"""What all pages share: templates that escape everything, one style sheet, a policy that lets nothing else in."""

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
TEMPLATE_FOLDERS = (TEMPLATES, _RUN_TEMPLATES)

# Every page begins with it: by this line `write_reports` knows what it made itself.
MARKER = '<meta name="generator" content="trainwreck grader">'


def render(
    template: str, context: Mapping[str, Any], *, script: str | None = None, pictures: bool = False
) -> str:
    """Return a page. `script` is the name of the one file of script that it may run; None: it may run none.

    `pictures` says whether pictures may be shown that stand in the page itself; none is ever loaded.

    Style and script are allowed by their SHA-256, so that nothing else that found its way in would act.
    """
    style = _source("run.css", _RUN_TEMPLATES) + _source("report.css", TEMPLATES)
    code = _source(script, TEMPLATES) if script else ""
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + _hash_of(style)
    if code:
        policy += "; script-src " + _hash_of(code)
    if pictures:
        policy += "; img-src data:"
    page = environment().get_template(template)
    # The files are our own, and hold no end tag.
    own = {"style": Markup(style), "script": Markup(code), "marker": Markup(MARKER)}
    return page.render({**context, **own, "policy": policy})


@cache
def environment() -> Environment:
    """Return the environment of the templates.

    Every value is escaped, and stripped of hidden characters first; an unknown name is an error.
    """
    result = Environment(
        loader=FileSystemLoader(TEMPLATE_FOLDERS),
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


def is_own_page(path: Path) -> bool:
    """Say whether a page was made here."""
    return MARKER.encode() in beginning_of(path)


def beginning_of(path: Path) -> bytes:
    """Return the beginning of a file; of what is none of our business, a folder among others, a question mark."""
    if not path.is_file():  # a pipe would be waited for
        return b"?"
    try:
        with path.open("rb") as file:
            return file.read(1024)
    except OSError:
        return b"?"
