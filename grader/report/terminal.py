"""`grader show`: one submission, at the terminal's own width; nothing in it can move the cursor."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from grader.report.text import clipped, points
from grader.score.verdict import Check, SubmissionScore

_STYLES = {"graded": "green", "rejected": "red", "not judged": "yellow"}
_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "could not judge": ("?", "yellow")}
_LIMIT = 600  # characters of one sentence


def show_submission(score: SubmissionScore, console: Console) -> None:
    """Print total, criteria, every check with its reason and remedy, decisions, flags and provenance.

    All text is printed as it stands: no markup, no control characters, cut where it is very long.
    """

    def say(words: str, style: str = "", indent: int = 0) -> None:
        console.print(Padding(Text(clipped(words, _LIMIT), style=style), (0, 0, 0, indent), expand=False))

    say(f"{score.student} {score.recipe}", "bold")
    total = f"{points(score.total)} of 100 points" if score.total is not None else "no total yet"
    say(f"{score.status}, {total}", _STYLES[score.status])
    if warning := score.provenance.get("warning"):
        say(f"Warning: {warning}", "bold red")
    if score.reason:
        say(score.reason)
    for flag in score.flags:
        say(f"Flag {flag.id}: {flag.message}", "yellow")
    for name, criterion in score.criteria.items():
        console.print()
        say(f"{name} {_of(criterion.points, criterion.max)}", "bold")
        for check in criterion.checks:
            mark, style = _MARKS[check.outcome]
            say(f"{mark} {check.title}  {_of(check.points, check.max)}  {name}.{check.id}", style)
            for words in _words(check):
                say(words, indent=2)
    for key, value in sorted(score.provenance.items()):
        say(f"{key}: {value}", "dim")


def _words(check: Check) -> list[str]:
    """Return the sentences under a check."""
    words = [check.reason]
    if check.rule is not None:
        ruled = f"{check.rule.outcome} ({_of(check.rule.points, check.max)})"
        words = [
            f"The rule said {ruled}: {check.rule.reason}",
            f"The instructor decided {_of(check.points, check.max)}: {check.comment}",
        ]
    if check.remedy and check.outcome != "passed":
        words.append(f"What would have earned them: {check.remedy}")
    return words


def _of(earned: float | None, most: float) -> str:
    return f"{'open' if earned is None else points(earned)} of {points(most)}"
