"""Show how far a class is: a bar for each stage, with the time left and the slowest submission so far."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich_progress
from rich.console import Console

from harness.errors import printable

_NAME_LIMIT = 40  # characters of a submission's name
# Replays end in bursts, as many at a time as run in parallel: estimate the time left over some minutes.
_ESTIMATE_OVER = 300.0  # seconds


class Progress:
    """Follows the stages of a grading, and shows one stage at a time; without a bar it shows nothing."""

    def __init__(self, bar: rich_progress.Progress | None = None) -> None:
        self._bar = bar
        self._longest = 0.0

    def begin(self, stage: str, total: int) -> None:
        """Start a stage of `total` items."""
        self._longest = 0.0
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(stage, total=total, slowest="")

    def done(self, name: str, seconds: float) -> None:
        """Count one item of the stage: the submission that it belongs to, and how long it took."""
        if self._bar is None:
            return
        [task] = self._bar.task_ids
        if seconds > self._longest:
            self._longest = seconds
            self._bar.update(task, slowest=f"slowest {printable(name, _NAME_LIMIT)} {seconds:.1f} s")
        self._bar.advance(task)


@contextmanager
def shown_progress(console: Console) -> Iterator[Progress]:
    """Show a progress bar if the console is a terminal, and nothing otherwise; the bar goes when the block ends."""
    if not console.is_terminal:
        yield Progress()
        return
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(bar_width=None),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(compact=True),
        rich_progress.TextColumn("left"),
        rich_progress.TextColumn("{task.fields[slowest]}", markup=False),
    )
    with rich_progress.Progress(
        *columns, console=console, transient=True, expand=True, speed_estimate_period=_ESTIMATE_OVER
    ) as bar:
        yield Progress(bar)
