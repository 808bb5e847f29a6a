"""How far a part of the self-check is: a bar on a terminal, else a line now and then, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

# progress(done, all)
Count = Callable[[int, int], None]
_LINES = 10  # of one count, where there is no terminal


class StagesCounted:
    """The progress of a class, of which each stage is counted as one of this self-check."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._done = self._total = 0

    def __enter__(self) -> "StagesCounted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage, which consists of so many pieces of work."""
        self._stack.close()
        self._count = self._stack.enter_context(counting(stage))
        self._done, self._total = 0, total

    def done(self, name: str, seconds: float) -> None:
        """Count a piece of work of this stage."""
        self._done += 1
        self._count(self._done, self._total)


@contextmanager
def counting(label: str) -> Iterator[Count]:
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
