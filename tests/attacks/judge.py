"""Did the grader hold? What must be true of any class with attacks in it, and of each attack's own row."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attacks.attack import BREACHED, Attack
from attacks.lab import Lab, Scored
from grader.intake.submission import submission_name
from grader.report.text import file_stem

Row = Mapping[str, Any]
# What moves a terminal's cursor or turns its text: control characters but the line feed, marks of direction, line
# separators, what cannot be seen, lone surrogates.
UNFIT = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def class_faults(lab: Lab, scored: Scored) -> Iterator[str]:
    """Yield what went wrong around a class, whoever did it."""
    if scored.status is None:
        yield "the grader had to be killed"
        return
    if scored.status not in (0, 1):
        yield f"the grader ended with status {scored.status}: {shown(scored.stderr)}"
    if b"Traceback" in scored.stderr:
        yield f"the grader failed: {shown(scored.stderr)}"
    for words in scored.left:
        yield f"a process is left: {words}"
    yield from scored.changes
    for stream in (scored.stdout, scored.stderr):
        if found := UNFIT.search(stream.decode("utf-8", "surrogateescape")):
            yield f"{found[0]!r} reached the terminal"
    yield from _honest_faults(lab, scored)
    for folder in (scored.reports, scored.memory):
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            yield from _secrets(
                path.name.encode() + (path.read_bytes() if path.is_file() else b""), path, lab
            )
    yield from _secrets(scored.stdout + scored.stderr, Path("the terminal"), lab)


def _honest_faults(lab: Lab, scored: Scored) -> Iterator[str]:
    before, after = lab.alone.rows(), scored.rows()
    for name, row in before.items():
        if json.dumps(row) != json.dumps(after.get(name)):
            yield f"the score of {name} is another"
        page = f"{file_stem(name)}.html"
        found = scored.reports / page
        if not found.exists() or found.read_bytes() != (lab.alone.reports / page).read_bytes():
            yield f"the page of {name} is another"


def _secrets(content: bytes, place: Path, lab: Lab) -> Iterator[str]:
    for what, word in (("the canary's secret", lab.base.secret), ("the mark of a breach", BREACHED)):
        if word.encode() in content:
            yield f"{what} is in {place.name}"


def attack_faults(attack: Attack, lab: Lab, scored: Scored) -> Iterator[str]:
    """Yield in what an attack's own row is not what was expected."""
    row = row_of(attack, scored)
    if row is None:
        yield "it has no row"
        return
    expected = attack.expected
    if row["status"] not in expected.status:
        yield f"it is {row['status']}, not {' or '.join(expected.status)}: {row['reason'] or row['total']}"
    if "The grader failed" in row["reason"]:
        yield row["reason"]
    if not any(re.search(expected.because, words) for words in _reasons(row)):
        yield f"nothing says {expected.because!r}"
    baseline = lab.baselines[expected.gains_over]
    for what, own, most in (
        ("in all", known_points(row), known_points(baseline)),
        ("for the fix", known_points(row, "fix"), known_points(baseline, "fix")),
    ):
        if own > most + 1e-9:
            yield f"it has {own:g} points {what}, more than the {most:g} of {expected.gains_over}"


def row_of(attack: Attack, scored: Scored) -> Row | None:
    """Return the row of an attack in scores.json."""
    return scored.rows().get(submission_name(Path(attack.tarball)))


def known_points(row: Row, criterion: str | None = None) -> float:
    """Return the sum of the points that were given, open checks left out."""
    names: Iterable[str] = row["criteria"] if criterion is None else (criterion,)
    checks = [check for name in names for check in row["criteria"].get(name, {"checks": ()})["checks"]]
    return float(sum(check["points"] or 0 for check in checks))


def _reasons(row: Row) -> Iterator[str]:
    yield row["reason"]
    for criterion in row["criteria"].values():
        yield from (check["reason"] for check in criterion["checks"])
    yield from (flag["message"] for flag in row["flags"])


def shown(output: bytes) -> str:
    """Return the last of what a program said, fit to be shown."""
    return UNFIT.sub("?", output.decode("utf-8", "replace").replace("\n", " "))[-300:]
