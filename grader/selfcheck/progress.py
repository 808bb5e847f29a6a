"""How far a part of the self-check is: a bar on a terminal, else a line now and then, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from grader.replays import Progress

_LINES = 10  # of one count, where there is no terminal


@contextmanager
def counting(label: str) -> Iterator[Progress]:
    """Show what `progress(done, all)` tells."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: _tell(console, label, done, total)
        return
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _tell(console: Console, label: str, done: int, total: int) -> None:
    if done and done * _LINES // total != (done - 1) * _LINES // total:
        console.print(f"{label}: {done} of {total}", highlight=False)
