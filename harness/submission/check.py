"""`make check`: all that can be judged of a workspace before it is handed in, without knowing the answer."""

import sys
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harness.submission.check_item import CheckItem, Outcome
from harness.submission.check_replay import Replay, check_replay
from harness.submission.check_report import check_experiment, check_report
from harness.submission.check_run import check_run
from harness.workspace import Workspace

__all__ = ["CheckItem", "Outcome", "Replay", "quick_checks", "render_checks", "run_checks"]

# Mark, mark for a terminal that has only ASCII, style.
_MARKS: dict[Outcome, tuple[str, str, str]] = {
    "passed": ("✓", "+", "green"),
    "failed": ("✗", "x", "bold red"),
    "could not judge": ("?", "?", "yellow"),
}


def quick_checks(workspace: Workspace) -> list[CheckItem]:
    """Judge what the files alone tell."""
    return [
        *check_run(workspace, "broken"),
        *check_run(workspace, "fixed"),
        *check_experiment(workspace),
        *check_report(workspace),
    ]


def run_checks(workspace: Workspace, replay: Replay | None) -> list[CheckItem]:
    """Judge everything; `replay` makes the named run again and returns its folder (None: leave that open).

    A run that cannot be made again (`UserError`) could not be judged; any other exception of `replay` is a
    fault of ours, and is raised.
    """
    return [
        *quick_checks(workspace),
        check_replay(workspace, "broken", replay),
        check_replay(workspace, "fixed", replay),
    ]


def render_checks(items: Sequence[CheckItem]) -> RenderableType:
    """Return the items as a table for the terminal, and under it how many there are of each outcome."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in items:
        mark, plain_mark, style = _MARKS[item.outcome]
        if not (sys.stdout.encoding or "").lower().startswith("utf"):
            mark = plain_mark
        # As Text, since a message may hold what rich would read as markup.
        table.add_row(Text(mark, style=style), Text(item.id), Text(item.message))
    counts = {outcome: sum(item.outcome == outcome for item in items) for outcome in _MARKS}
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    return Group(table, Text(f"\n{told}."))
