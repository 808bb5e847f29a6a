"""Show how far a class is: a bar for each stage, with the time left."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress as rich_progress
from rich.console import Console

# Replays end in bursts, as many at a time as run in parallel: estimate the time left over some minutes.
_ESTIMATE_OVER = 300.0  # seconds


class Progress:
    """Follows the stages of a grading, and shows one stage at a time; without a bar it shows nothing."""

    def __init__(self, bar: rich_progress.Progress | None = None) -> None:
        self._bar = bar

    def begin(self, stage: str, total: int) -> None:
        """Start a stage of `total` items."""
        if self._bar is not None:
            for task in self._bar.task_ids:
                self._bar.remove_task(task)
            self._bar.add_task(stage, total=total)

    def done(self) -> None:
        """Count one item of the stage."""
        if self._bar is not None:
            [task] = self._bar.task_ids
            self._bar.advance(task)


@contextmanager
def shown_progress(console: Console) -> Iterator[Progress]:
    """Show a progress bar if the console is a terminal, and nothing otherwise; the bar goes when the block ends."""
    if not console.is_terminal:
        yield Progress()
        return
    columns = (*rich_progress.Progress.get_default_columns(), rich_progress.MofNCompleteColumn())
    with rich_progress.Progress(
        *columns, console=console, transient=True, speed_estimate_period=_ESTIMATE_OVER
    ) as bar:
        yield Progress(bar)
