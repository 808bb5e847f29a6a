"""The progress of a long command: a bar on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich import progress as rich_progress
from rich.console import Console

_ESTIMATE_OVER = 300.0  # seconds


class ProgressBar(rich_progress.Progress):
    """Follows the stages of a grading, and shows one stage at a time; a bar that is not started shows nothing."""

    def begin(self, stage: str, total: int) -> None:
        """Start a stage of `total` items."""
        for task in self.task_ids:
            self.remove_task(task)
        self.add_task(stage, total=total)

    def done(self) -> None:
        """Count one item of the stage."""
        [task] = self.task_ids
        self.advance(task)


@contextmanager
def shown_progress(console: Console) -> Iterator[ProgressBar]:
    """Show a progress bar if the console is a terminal, and nothing otherwise; the bar goes when the block ends."""
    columns = (*ProgressBar.get_default_columns(), rich_progress.MofNCompleteColumn())
    bar = ProgressBar(*columns, console=console, transient=True, speed_estimate_period=_ESTIMATE_OVER)
    with bar if console.is_terminal else nullcontext():
        yield bar
