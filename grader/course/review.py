"""`grader review`: ask about each check that waits for the instructor, and keep what is decided.

The submission's page shows what to judge: the changed lines, the report with its numbers marked, and the figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from grader.course.decisions import Decision, decisions_path, keep_decision, load_decisions
from grader.report.text import clipped, file_stem, points
from grader.score.verdict import Check, SubmissionScore, read_scores
from harness.errors import Stopped
from harness.terminal import folded

_LIMIT = 600  # characters of one sentence


@dataclass(frozen=True)
class _Waiting:
    """One thing to decide: an open check, by its name in the rubric, or a whole submission without checks."""

    row: SubmissionScore
    name: str | None = None
    check: Check | None = None

    @property
    def sha256(self) -> str | None:
        """The digest of the tarball that was scored."""
        digest = self.row.provenance.get("tarball_sha256")
        return digest if isinstance(digest, str) else None


def review(out: Path, who: str, console: Console) -> None:
    """Name everything that waits in these reports, and ask for points and a comment; Enter leaves a check as it is.

    Each decision is on the disk before the next question. Raises `UserError` if there are no reports.
    """
    path = decisions_path(out)
    decided = {(item.submission, item.about, item.sha256) for item in load_decisions(out)}
    waiting = [
        item
        for row in read_scores(out).submissions
        for item in _waiting(row)
        if (row.submission, item.name or "the total", item.sha256) not in decided
    ]
    if not waiting:
        console.print("Nothing waits for you.")
        return
    shown = None
    for number, item in enumerate(waiting, start=1):
        if item.row is not shown:
            shown = item.row
            console.rule(Text(clipped(shown.submission, 80), style="bold"))
            _say(console, f"{shown.student}, {shown.recipe}: {(out / file_stem(shown.submission)).resolve()}.html")
            for flag in shown.flags:
                _say(console, f"Flag {flag.id}: {flag.message}", "yellow")
        title = "no check could be judged" if item.check is None else f"{item.name}: {item.check.title}"
        _say(console, f"[{number} of {len(waiting)}] {title}", "bold")
        _say(console, item.row.reason if item.check is None else item.check.reason)
        try:
            decision = _asked(item, who)
        except click.Abort:
            raise Stopped("\nStopped. Your decisions so far are kept: give the same command again.") from None
        if decision is not None:
            keep_decision(out, decision)
    _say(console, f"Your decisions are in {path}. Next: the same grader score as before applies them.")


def _waiting(row: SubmissionScore) -> Iterator[_Waiting]:
    if row.status != "not judged":
        return
    if not row.criteria:
        yield _Waiting(row)
    for name, criterion in row.criteria.items():
        for check in criterion.checks:
            if check.points is None:
                yield _Waiting(row, f"{name}.{check.id}", check)


def _say(console: Console, line: str, style: str = "") -> None:
    shown = folded(clipped(line, _LIMIT), console.width if console.is_terminal else None, hang=2)
    console.print(Text(shown, style=style), highlight=False, soft_wrap=True)


def _asked(item: _Waiting, who: str) -> Decision | None:
    """Ask for points and a comment; return None if the instructor leaves it open."""
    most = 100.0 if item.check is None else item.check.max
    prompt = f"Points, 0 to {points(most)} (Enter leaves it open)"
    while answer := click.prompt(prompt, default="", show_default=False).strip():
        try:
            given = float(answer.replace(",", "."))
        except ValueError:
            given = -1.0
        if 0 <= given <= most:
            break
        click.echo(f"Give a number from 0 to {points(most)}, or press Enter.")
    else:
        return None
    comment = ""
    while not comment:
        comment = click.prompt("Comment, which the student sees (needed)").strip()
    return Decision(
        submission=item.row.submission,
        check=item.name,
        points=None if item.check is None else given,
        total=given if item.check is None else None,
        comment=comment,
        who=who,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=item.sha256,
    )
