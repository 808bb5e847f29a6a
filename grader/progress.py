"""Show the progress of a long command as a bar on the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich import progress as rich_progress
from rich.console import Console

# Estimate the remaining time from the last 300 s, because many replays end at nearly the same time.
_ESTIMATE_OVER = 300.0


class ProgressBar(rich_progress.Progress):
    """A progress bar that shows one stage of the grading at a time. The bar is invisible until it is started."""

    def begin(self, stage: str, total: int) -> None:
        """Start a stage of `total` items."""
        for task in self.task_ids:
            self.remove_task(task)
        self.add_task(stage, total=total)

    def done(self) -> None:
        """Mark one item of the stage as done."""
        [task] = self.task_ids
        self.advance(task)


@contextmanager
def shown_progress(console: Console) -> Iterator[ProgressBar]:
    """Yield a progress bar. It is visible only on a terminal, and disappears when the block ends."""
    columns = (*ProgressBar.get_default_columns(), rich_progress.MofNCompleteColumn())
    bar = ProgressBar(*columns, console=console, transient=True, speed_estimate_period=_ESTIMATE_OVER)
    with bar if console.is_terminal else nullcontext():
        yield bar
