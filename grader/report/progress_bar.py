"""The progress of a class on a terminal: a bar for its stage, with the rate, the time left and the slowest so far."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from grader.intake.names import printable
from grader.report.progress import Progress as Told
from grader.report.progress import Silent

# Replays end in bursts, as many as run side by side: the rate is that of the last minutes.
_RATE_OVER = 300.0  # seconds
_NAME_LIMIT = 40  # characters of a submission's name


class _Rate(TextColumn):
    """How many pieces of work are done in a second, or in a minute where it is less than one."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if speed is None:
            return Text("-/s")
        return Text(f"{speed:.1f}/s" if speed >= 1 else f"{speed * 60:.1f}/min")


class Bar:
    """Shows one stage at a time."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, slowest="")
        self._longest = 0.0

    def begin(self, stage: str, total: int) -> None:
        """Show another stage."""
        self._longest = 0.0
        self._bar.remove_task(self._task)
        self._task = self._bar.add_task(stage, total=total, slowest="")

    def done(self, name: str, seconds: float) -> None:
        """Count a piece of work, and name its submission where none took longer."""
        if seconds > self._longest:
            self._longest = seconds
            slowest = f"slowest {printable(name)[:_NAME_LIMIT]} {seconds:.1f} s"
            self._bar.update(self._task, slowest=slowest)
        self._bar.advance(self._task)


@contextmanager
def shown_progress(console: Console) -> Iterator[Told]:
    """Show progress on a terminal, and nothing elsewhere; the bar goes when the block ends."""
    if not console.is_terminal:
        yield Silent()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
        TextColumn("{task.fields[slowest]}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, expand=True, speed_estimate_period=_RATE_OVER
    ) as bar:
        yield Bar(bar)
