"""Judge the red team: check a class with attacks, and the row and the page of each attack."""

import csv
import io
import json
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from click.testing import CliRunner
from helpers.page_reader import Page

from attacks.attack import BREACHED, Attack
from attacks.lab import Lab, Scored
from grader.cli import cli
from grader.intake.submission import escape_name
from grader.report.gradebook import export
from grader.report.text import file_stem
from grader.score.identity import ABOUT_OTHERS
from grader.score.scores_file import SCORES, read_scores
from harness.errors import UserError
from harness.submission.archive import SUFFIX

Row = Mapping[str, Any]
# Characters that move a terminal's cursor or reverse its text: control characters except the line feed, direction
# marks, line separators, invisible characters, lone surrogates.
UNFIT = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
# Tags that no page contains. Only the class page, which has a script, contains the last three.
_NEVER = {
    *("iframe", "frame", "object", "embed", "form", "base", "link", "video", "audio", "source", "track", "math"),
    *("foreignobject", "animate", "set", "use", "image", "portal", "noscript"),
}
_WITH_SCRIPT = {"script", "input", "button", "select"}
_ADDRESSES = {*("href", "src", "srcset", "action", "formaction", "data", "poster", "background", "xlink:href", "ping")}
_LINK = re.compile(r"https?://|mailto:|#|[A-Za-z0-9_][A-Za-z0-9._-]*\.(html|csv)$", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$")
# The start of a spreadsheet cell, followed by a character that starts a formula.
_COMPUTED = re.compile(r"""(?:^|[;\t\n])[^\S\t\n]*["']?[^\S\t\n]*[=+\-@\uff1d\uff0b\uff0d\uff20]""")
# While a command runs, it receives all output of this process, from every thread. So only one command may run.
_ONE_AT_A_TIME = threading.Lock()


def class_faults(lab: Lab, scored: Scored) -> Iterator[str]:
    """Yield each problem with a whole class: the grader, the machine, the rows of honest students, the shared pages."""
    said = {"the terminal": scored.ended.out + scored.ended.err}
    if scored.ended.status not in (0, 1) or "Traceback" in scored.ended.err:
        yield f"the grader ended with {scored.ended.status}: {UNFIT.sub('?', scored.ended.err)[-300:]}"
    yield from scored.changes
    yield from _unfit(said)
    before, after = lab.alone.rows(), scored.rows()
    for name, row in before.items():
        if json.dumps(_own(row)) != json.dumps(_own(after.get(name))):
            yield f"the score of {name} is another"
        page = f"{file_stem(name)}.html"
        if _bytes(scored.reports / page) != _bytes(lab.alone.reports / page):
            yield f"the page of {name} is another"
    texts = {what: text.encode("utf-8", "replace") for what, text in said.items()}
    for folder in (scored.reports, scored.memory):
        texts |= {path.name: path.name.encode() + _bytes(path) for path in folder.rglob("*")}
    for place, content in texts.items():
        for what, word in (("the canary's secret", lab.base.secret), ("the mark of a breach", BREACHED)):
            if word.encode() in content:
                yield f"{what} is in {place}"
    if after:
        yield from page_faults(scored.reports / "index.html")
        yield from _table_faults(_bytes(scored.reports / "gradebook.csv"))
        yield from _export_faults(lab, scored)


def attack_faults(attack: Attack, lab: Lab, scored: Scored) -> Iterator[str]:
    """Yield each difference between an attack's row and page and the expected result."""
    row = row_of(attack, scored)
    if row is None:
        yield "it has no row"
        return
    expected, baseline = attack.expected, lab.baselines[attack.expected.gains_over]
    if row["status"] not in expected.status:
        yield f"it is {row['status']}, not {' or '.join(expected.status)}: {row['reason'] or row['total']}"
    if "The grader failed" in row["reason"]:
        yield row["reason"]
    if not any(re.search(expected.because, words) for words in _reasons(row)):
        yield f"nothing says {expected.because!r}"
    for what, criterion in (("in all", None), ("for the fix", "fix")):
        own, most = known_points(row, criterion), known_points(baseline, criterion)
        if own > most + 1e-9:
            yield f"it has {own:g} points {what}, more than the {most:g} of {expected.gains_over}"
    yield from page_faults(scored.reports / f"{file_stem(row['submission'])}.html")


def _own(row: Row | None) -> Row | None:
    """Return a row without the flags about other students: similar names and similar work."""
    return row and {**row, "flags": [flag for flag in row["flags"] if flag["id"] not in ABOUT_OTHERS]}


def row_of(attack: Attack, scored: Scored) -> Row | None:
    """Return the row of an attack in scores.json."""
    return scored.rows().get(escape_name(Path(attack.tarball).name.removesuffix(SUFFIX)))


def known_points(row: Row, criterion: str | None = None) -> float:
    """Return the sum of the points of all decided items."""
    names: Iterable[str] = row["criteria"] if criterion is None else (criterion,)
    checks = [check for name in names for check in row["criteria"].get(name, {"checks": ()})["checks"]]
    return float(sum(check["points"] or 0 for check in checks))


def _reasons(row: Row) -> Iterator[str]:
    yield row["reason"]
    for criterion in row["criteria"].values():
        yield from (check["reason"] for check in criterion["checks"])
    yield from (flag["message"] for flag in row["flags"])


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _unfit(texts: Mapping[str, str]) -> Iterator[str]:
    for place, text in texts.items():
        if found := UNFIT.search(text):
            yield f"{found[0]!r} is in {place}"


def page_faults(path: Path) -> Iterator[str]:
    """Yield each element of a page that could run code, load a resource, or reverse the text."""
    html = _bytes(path).decode()
    try:
        page = Page(html)
    except AssertionError as error:
        yield f"{path.name} is no whole page: {str(error)[:100]}"
        return
    yield from (f"{path.name} {fault}" for fault in _page_faults(page))
    yield from _unfit({path.name: html.replace("\t", " ")})


def _page_faults(page: Page) -> Iterator[str]:
    if not page.all("meta") or not page.policy.startswith(_POLICY):
        yield "has another policy"
        return
    has_script = "script-src" in page.policy
    if len(page.all("script")) != has_script or len(page.all("style")) != 1:
        yield "has a script or a style sheet of somebody else's"
    if any(len(page.all(tag)) != 1 for tag in ("html", "head", "body")):
        yield "ends before its end"
    for tag, attributes in page.tags:
        if tag in _NEVER or (tag in _WITH_SCRIPT and not has_script):
            yield f"has <{tag}>"
        for name, value in attributes.items():
            if name.startswith("on") or name == "style":
                yield f"has {name}= in <{tag}>"
            if name in _ADDRESSES and not (_PICTURE if tag == "img" else _LINK).match(value or ""):
                yield f"leads to {str(value)[:60]!r} by <{tag}>"


def _export_faults(lab: Lab, scored: Scored) -> Iterator[str]:
    exports = scored.reports.parent / "exports"
    exports.mkdir(exist_ok=True)
    shutil.copy(scored.reports / SCORES, exports)
    platforms: tuple[Literal["canvas", "moodle"], ...] = ("canvas", "moodle")
    for platform in platforms:
        yield from _command_faults("export", "--format", platform, "--out", str(exports))
        before, after = (export(read_scores(one.reports), platform) for one in (lab.alone, scored))
        yield from _table_faults(after)
        if missing := set(_cells(before)) - set(_cells(after)):
            yield f"the export has other cells: {sorted(missing)[:3]}"


def _cells(data: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield student, heading and content of each cell in an export."""
    header, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
    return ((line[0], name, cell) for line in lines for name, cell in zip(header, line, strict=True))


def _table_faults(data: bytes) -> Iterator[str]:
    for line in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")):
        for cell in line:
            computed = _COMPUTED.search(cell)
            # "-" tells Moodle that there is no grade.
            if computed and cell != "-" and not cell[computed.start() :].lstrip(";\t\n ").startswith("'"):
                yield f"a spreadsheet would compute {cell[:60]!r}"
            yield from _unfit({"a cell": cell.replace("\t", " ")})


def _command_faults(*words: str) -> Iterator[str]:
    with _ONE_AT_A_TIME:
        told = CliRunner().invoke(cli, words)
    if told.exception is not None and not isinstance(told.exception, SystemExit | UserError):
        yield f"grader {words[0]} failed: {type(told.exception).__name__}"
    yield from _unfit({f"what grader {words[0]} prints": f"{told.output}{told.exception or ''}"})
