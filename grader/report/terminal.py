"""`grader show`: one submission, at the terminal's own width; nothing in it can move the cursor."""

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.report.text import clipped, points
from grader.score.verdict import Check, Criterion, CriterionScore, SubmissionScore

_STYLES = {"graded": "green", "rejected": "red", "not judged": "yellow"}
_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "could not judge": ("?", "yellow")}
_LIMIT = 600  # characters of one sentence


def show_submission(score: SubmissionScore, console: Console) -> None:
    """Print total, criteria, every check with its reason and remedy, overrides, flags and provenance.

    All text is printed as it stands: no markup, no control characters, cut where it is very long.
    """
    console.print(Text(clipped(score.student, 60), style="bold"), Text(clipped(score.recipe, 60)))
    total = f"{points(score.total)} of 100 points" if score.total is not None else "no total yet"
    console.print(Text(f"{score.status}, {total}", style=_STYLES[score.status]))
    warning = score.provenance.get("warning")
    if warning:
        console.print(Text(f"Warning: {clipped(str(warning), _LIMIT)}", style="bold red"))
    if score.reason:
        console.print(Text(clipped(score.reason, _LIMIT)))
    for flag in score.flags:
        console.print(Text(f"Flag {clipped(flag.id, 60)}: {clipped(flag.message, _LIMIT)}", style="yellow"))
    for name, criterion in score.criteria.items():
        _show_criterion(name, criterion, console)
    _show_provenance(score, console)


def _show_criterion(name: Criterion, criterion: CriterionScore, console: Console) -> None:
    console.print()
    console.print(Text(f"{name} {_of(criterion.points, criterion.max)}", style="bold"))
    for check in criterion.checks:
        mark, style = _MARKS[check.outcome]
        line = Text.assemble(
            (f"{mark} ", style), clipped(check.title, 120), f"  {_of(check.points, check.max)}"
        )
        line.append(f"  {name}.{clipped(check.id, 60)}", style="dim")
        console.print(line)
        for words, look in _words(check):
            console.print(Padding(Text(clipped(words, _LIMIT), style=look), (0, 0, 0, 2)))


def _words(check: Check) -> list[tuple[str, str]]:
    """Return the sentences under a check, each with its style."""
    words = []
    if check.rule is None:
        words.append((check.reason, ""))
    else:
        words.append(
            (
                f"The rule said {check.rule.outcome} ({_of(check.rule.points, check.max)}): {check.rule.reason}",
                "dim",
            )
        )
        words.append((f"The instructor decided {_of(check.points, check.max)}: {check.comment}", "bold"))
    if check.remedy and check.outcome != "passed":
        words.append((f"What would have earned them: {check.remedy}", "cyan"))
    return words


def _show_provenance(score: SubmissionScore, console: Console) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in sorted(score.provenance.items()):
        table.add_row(Text(clipped(name, 40)), Text("-" if value is None else clipped(str(value), 200)))
    if score.provenance:
        console.print()
        console.print(table)


def _of(earned: float | None, most: float) -> str:
    return f"{'open' if earned is None else points(earned)} of {points(most)}"
