"""`grader review`: walk through the checks that wait for the instructor, and keep what is decided.

It shows why a check waits, the lines that the student inserted, and the report; the page marks its numbers.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from grader.course.decisions import Decision, decisions_path, keep_decision, load_decisions
from grader.intake.names import Rejected
from grader.intake.submission import Submission, read_submission, submission_name
from grader.report.scores_file import read_scores
from grader.report.text import clipped, file_stem, points, source_diff, visible
from grader.score.verdict import Check, SubmissionScore
from harness.errors import Stopped, UserError
from harness.recipe import load_recipe
from harness.workspace import REPORT

_LIMIT = 600  # characters of one sentence


@dataclass(frozen=True)
class _Waiting:
    """One thing to decide: an open check, by its name in the rubric, or a whole submission without checks."""

    row: SubmissionScore
    name: str | None
    check: Check | None

    @property
    def sha256(self) -> str | None:
        """The digest of the tarball that was scored."""
        digest = self.row.provenance.get("tarball_sha256")
        return digest if isinstance(digest, str) else None

    @property
    def most(self) -> float:
        """The points that can be given."""
        return 100.0 if self.check is None else self.check.max


def review(out: Path, submissions: Path, who: str, console: Console) -> None:
    """Show everything that waits in these reports, and ask for points and a comment; Enter leaves a check as it is.

    submissions: the folder of the tarballs, for the student's texts. Each decision is on the disk before the next
    question. Raises `UserError` if there are no reports.
    """
    path = decisions_path(out)
    decided = {item.subject for item in load_decisions(out)}
    waiting = [
        item
        for row in read_scores(out).submissions
        for item in _waiting(row)
        if (row.submission, item.name, item.sha256) not in decided
    ]
    if not waiting:
        console.print("Nothing waits for you.")
        return
    tarballs = _tarballs(submissions)
    shown = None
    for number, item in enumerate(waiting, start=1):
        if item.row is not shown:
            _show_submission(item, tarballs.get(item.row.submission), out, console)
            shown = item.row
        title = "no check could be judged" if item.check is None else f"{item.name}: {item.check.title}"
        _say(console, f"[{number} of {len(waiting)}] {title}", "bold")
        _say(console, item.row.reason if item.check is None else item.check.reason)
        try:
            decision = _asked(item, who)
        except click.Abort:
            raise Stopped("\nStopped. Your decisions so far are kept: give the same command again.") from None
        if decision is not None:
            keep_decision(path, decision)
    _say(console, f"Your decisions are in {path}. Next: grader score {submissions} --out {out} applies them.")


def _waiting(row: SubmissionScore) -> Iterator[_Waiting]:
    if row.status != "not judged":
        return
    if not row.criteria:
        yield _Waiting(row, None, None)
    for name, criterion in row.criteria.items():
        for check in criterion.checks:
            if check.points is None:
                yield _Waiting(row, f"{name}.{check.id}", check)


def _tarballs(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        raise UserError(f"There is no folder {folder}: name the students' tarballs with --submissions.")
    return {submission_name(path): path for path in sorted(folder.glob("*.tar.gz"))}


def _show_submission(item: _Waiting, tarball: Path | None, out: Path, console: Console) -> None:
    row = item.row
    console.rule(Text(clipped(row.submission, 80), style="bold"))
    _say(console, f"{row.student}, {row.recipe}: {out / file_stem(row.submission)}.html")
    for flag in row.flags:
        _say(console, f"Flag {flag.id}: {flag.message}", "yellow")
    submission = _read(tarball, item.sha256)
    if submission is None:
        _say(console, "Open the page: its tarball is missing, has changed, or holds an answer.", "yellow")
        return
    console.print("Inserted lines", style="bold")
    for line in _inserted(submission):
        _say(console, line, "green")
    console.print("Report", style="bold")
    report = submission.files.get(REPORT, b"").decode("utf-8", "replace")
    console.print(Text(visible(report)), highlight=False, soft_wrap=True)


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(Text(clipped(line, _LIMIT), style=style), highlight=False, soft_wrap=True)


def _read(tarball: Path | None, sha256: str | None) -> Submission | None:
    """Return the submission, or None if its bytes are not those that were scored, or it holds no experiment."""
    if tarball is None or sha256 not in (None, hashlib.sha256(tarball.read_bytes()).hexdigest()):
        return None
    try:
        found = read_submission(tarball)
    except Rejected:
        return None
    return found if isinstance(found, Submission) else None


def _inserted(submission: Submission) -> Iterator[str]:
    broken = load_recipe(submission.manifest.recipe).broken_source()
    source = submission.files["experiment.py"].decode("utf-8", "replace")
    for lines in source_diff(broken, source):
        for line in lines:
            if line.kind == "added":
                yield f"  {line.new:>4}  {line.code}"


def _asked(item: _Waiting, who: str) -> Decision | None:
    """Ask for points and a comment; return None if the instructor leaves it open."""
    prompt = f"Points, 0 to {points(item.most)} (Enter leaves it open)"
    while answer := click.prompt(prompt, default="", show_default=False).strip():
        try:
            given = float(answer.replace(",", "."))
        except ValueError:
            given = -1.0
        if 0 <= given <= item.most:
            break
        click.echo(f"Give a number from 0 to {points(item.most)}, or press Enter.")
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
