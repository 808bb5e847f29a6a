"""Is what a reader opens harmless? The pages, the tables, and what `grader show` and `grader export` print."""

import csv
import io
import re
import shutil
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from click import Command
from click.testing import CliRunner, Result
from page_reader import Page

from attacks.attack import Attack
from attacks.judge import UNFIT, row_of
from attacks.lab import Scored
from grader.cli import cli
from grader.report.gradebook import export
from grader.report.scores_file import SCORES, read_scores
from grader.report.text import file_stem
from grader.score.verdict import Scores
from harness.errors import UserError

_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
# What no page has; the class page, which has a script of its own, has the last three as well.
_NEVER = {
    *("iframe", "frame", "object", "embed", "form", "base", "link", "video", "audio"),
    *("source", "track", "foreignobject", "animate", "set", "use", "image", "portal", "math", "noscript"),
}
_WITH_SCRIPT = {"script", "input", "button", "select"}
_ADDRESSES = (
    "href",
    "src",
    "srcset",
    "action",
    "formaction",
    "data",
    "poster",
    "background",
    "xlink:href",
    "ping",
)
_LINK = re.compile(r"https?://|mailto:|#|[A-Za-z0-9_][A-Za-z0-9._-]*\.(html|csv)$", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$")
# Where a spreadsheet begins a cell, and what it then computes.
_COMPUTED = re.compile(r"""(?:^|[;\t\n])[^\S\t\n]*["']?[^\S\t\n]*[=+\-@\uff1d\uff0b\uff0d\uff20]""")


# While it runs, all that this process prints goes to it, whatever thread it comes from.
_ONE_AT_A_TIME = threading.Lock()


def _told(command: Command, words: Sequence[str]) -> Result:
    """Return what a command of the grader says."""
    with _ONE_AT_A_TIME:
        return CliRunner().invoke(command, words)


def view_faults(attack: Attack, scored: Scored) -> Iterator[str]:
    """Yield what is wrong with an attack's own page, and with what `grader show` prints of it."""
    row = row_of(attack, scored)
    if row is None:
        return
    name = row["submission"]
    yield from _page_file_faults(scored.reports / f"{file_stem(name)}.html")
    told = _told(cli, ["show", "--out", str(scored.reports), "--", name])
    yield from _command_faults("grader show", told.output, told.exception)
    # Another name, mistyped, for which the attacker's is the nearest.
    told = _told(cli, ["show", "--out", str(scored.reports), "--", f"{name}x"])
    yield from _command_faults("grader show", f"{told.output}{told.exception or ''}", told.exception)


def class_view_faults(scored: Scored, exports: Path) -> Iterator[str]:
    """Yield what is wrong with the page and the tables of a class, and with the tables for learning platforms."""
    yield from _page_file_faults(scored.reports / "index.html")
    yield from _table_faults((scored.reports / "gradebook.csv").read_bytes())
    exports.mkdir(parents=True, exist_ok=True)
    shutil.copy(scored.reports / SCORES, exports)
    for platform in ("canvas", "moodle"):
        told = _told(cli, ["export", "--format", platform, "--out", str(exports)])
        words = f"{told.output}{told.exception or ''}"
        yield from _command_faults(f"grader export {platform}", words, told.exception)
        # Who calls himself like another stops the whole export; so without those, what is in the tables.
        yield from _table_faults(export(_distinct(read_scores(scored.reports)), platform))


def _distinct(scores: Scores) -> Scores:
    rows = {" ".join(row.student.casefold().split()): row for row in scores.submissions}
    kept = {unicodedata.normalize("NFKC", login): row for login, row in rows.items()}
    return scores.model_copy(update={"submissions": tuple(kept.values())})


def _page_file_faults(page: Path) -> Iterator[str]:
    if not page.exists():
        yield f"{page.name} is missing"
    else:
        yield from (f"{page.name}: {fault}" for fault in page_faults(page.read_text(encoding="utf-8")))


def page_faults(html: str) -> Iterator[str]:
    """Yield what a page holds that could act, load anything, or turn its text around."""
    try:
        page = Page(html)
    except AssertionError as error:
        yield f"it is no whole page: {str(error)[:100]}"
        return
    if not page.policy.startswith(_POLICY):
        yield f"its policy is {page.policy}"
    has_script = "script-src" in page.policy
    if len(page.all("script")) != has_script:
        yield "it has a script of somebody else's"
    if len(page.all("style")) != 1:
        yield "it has a style sheet of somebody else's"
    if any(len(page.all(tag)) != 1 for tag in ("html", "head", "body")):
        yield "it ends before its end"
    for tag, attributes in page.tags:
        if tag in _NEVER or (tag in _WITH_SCRIPT and not has_script):
            yield f"it has <{tag}>"
        for name, value in attributes.items():
            if name.startswith("on") or name == "style":
                yield f"<{tag}> has {name}="
            if name in _ADDRESSES and not (_PICTURE if tag == "img" else _LINK).match(value or ""):
                yield f"<{tag}> leads to {str(value)[:60]!r}"
    if found := UNFIT.search(html.replace("\t", " ")):
        yield f"it holds {found[0]!r}"


def _table_faults(data: bytes) -> Iterator[str]:
    for line in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        for cell in line:
            computed = _COMPUTED.search(cell)
            # "-" is how Moodle is told that there is no grade.
            if computed and cell != "-" and not cell[computed.start() :].lstrip(";\t\n ").startswith("'"):
                yield f"a spreadsheet would compute {cell[:60]!r}"
            if found := UNFIT.search(cell.replace("\t", " ")):
                yield f"a cell holds {found[0]!r}"


def _command_faults(command: str, output: str, error: BaseException | None) -> Iterator[str]:
    if error is not None and not isinstance(error, SystemExit | UserError):
        yield f"{command} failed: {type(error).__name__}"
    if found := UNFIT.search(output):
        yield f"{command} prints {found[0]!r}"
