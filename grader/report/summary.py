"""Print a summary of the results at the end of `grader score`."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from grader.intake.folder import NO_ARCHIVE, FolderContent
from grader.report.gradebook import GRADEBOOK
from grader.report.text import count_noun
from grader.report.write import INDEX
from grader.score.identity import STRANGER, find_left_out
from grader.score.verdict import ABSENT, Scores
from harness.console.terminal import fold
from harness.errors import printable

_LISTED = 20  # the maximum number of lines in each list


def _count_all(statuses: Mapping[str, int], others: int, ignored: Mapping[str, int]) -> str:
    """Return a line with the number of submissions by status, of other files, and of ignored files by kind."""
    submissions = {"graded": 0, "rejected": 0, "not judged": 0} | dict(statuses)
    absent = {status: submissions.pop(status, 0) for status in ABSENT}
    kinds = ", ".join(f"{number} {status}" for status, number in submissions.items())
    number = sum(submissions.values())
    parts = [f"{number} {'submission' if number == 1 else 'submissions'} ({kinds})"]
    parts += [f"{count} {status}" for status, count in absent.items() if count and status != "not drawn"]
    parts += [count_noun(others, "other file")] if others else []
    parts += [f"ignored {kind} ({number})" for kind, number in ignored.items()]
    return f"In all: {', '.join(parts)}."


def print_summary(scores: Scores, found: FolderContent, out: Path, decisions: Path) -> int:
    """Print the results, the rows that need a decision, and the next commands. Return 1 if a row needs one, else 0."""
    console = Console()
    width = console.width if console.is_terminal else None

    def say(line: str) -> None:
        console.print(fold(line, width, hang=4), markup=False, highlight=False, soft_wrap=True)

    def say_list(title: str, lines: Sequence[str]) -> None:
        if lines:
            say(title)
        for line in lines[:_LISTED]:
            say(f"  {line}")
        if len(lines) > _LISTED:
            say(f"  and {len(lines) - _LISTED} more: the class page lists them all")

    say_list(
        f"The grader did not apply these decisions, which stay in {decisions}:",
        [
            f"{printable(one.submission)}: your decision about {printable(one.about)} ({one.says}). {one.why}"
            for one in scores.decisions
            if one.state == "not applied"
        ],
    )
    others = {
        file.name: file.problem.message for file in found.files if file.problem and file.problem.code == NO_ARCHIVE
    }
    statuses = Counter[str](row.status for row in scores.submissions if row.submission not in others)
    for row in scores.submissions:
        if row.status == "not judged":
            say(f"  {printable(row.submission)}: {printable(row.reason, 600)}")
    rejected = [row for row in scores.submissions if row.status == "rejected" and row.submission not in others]
    say_list("Rejected:", [f"{printable(row.submission)}: {printable(row.reason, 200)}" for row in rejected])
    if scores.assignment and len(rejected) > sum(row.is_there for row in scores.submissions) / 2:
        say(f"Most files are rejected. Do they really belong to {printable(scores.assignment)}?")
    for name, why in find_left_out(scores.submissions).items():
        say(f"  {printable(name)}: left out of {GRADEBOOK} and of exports. {printable(why, 600)}")
    say_list("Files that are not submissions:", [f"{printable(name)}: {why}" for name, why in others.items()])
    handed_in = [row for row in scores.submissions if row.arrival and row.submission not in others]
    flags = [(row.submission, flag.message) for row in handed_in for flag in row.flags if flag.id == STRANGER]
    say_list("Not on the roster:", [f"{printable(name)}: {printable(why)}" for name, why in flags])
    say_list("The table of --times names files that do not exist:", [printable(name) for name in found.unused])
    arrivals = [row.arrival for row in handed_in if row.arrival]
    if scores.schedule and (timeless := [one for one in arrivals if one.submitted_at is None]):
        waits = sum(row.untimed for row in handed_in)
        marked = sum(one.late for one in timeless)
        say(
            f"The time of submission of {len(timeless)} files is unknown. The platform marks {marked} of these files as"
            f" late. Not graded, because lateness would cost points: {waits}. Give the times with --times"
            " (docs/grading.md)."
        )
    if scores.upgrade:
        say(
            "The suite (exercises, harness and grader) or the rubric has changed since the last scoring:"
            f" {printable(scores.upgrade)}."
        )
    say_list(
        "Changed since the last scoring:",
        [
            f"{printable(one.submission)}: {one.before} -> {one.after} ({printable(one.why, 300)})"
            for one in scores.changes
        ],
    )
    console.print("Next:", style="bold")
    say(f"  open {out / INDEX} in a browser")
    if "not judged" in statuses:
        say(f"  grader review {out}")
    say(_count_all(statuses, len(others), found.ignored))
    sys.stdout.flush()
    return 1 if "not judged" in statuses else 0
