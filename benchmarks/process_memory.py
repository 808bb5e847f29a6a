"""The memory of a grader and its sandboxes, read from /proc while they run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# What the processes of a sandbox are started by; everything else below the grader is its own.
SANDBOX = "bwrap"


@dataclass
class Peak:
    """The most that was seen, in bytes.

    grader: the resident memory of its largest process outside of sandboxes, by the kernel's own high-water mark.
    worker: the resident memory of all processes of one sandbox together, each page counted once.
    """

    grader: int = 0
    worker: int = 0

    def look(self, grader: int, *, sandboxes: bool) -> None:
        """Look at the process with this number and at those below it; at `sandboxes` only where they are wanted."""
        self.grader = max(self.grader, high_water(grader))
        for child in children(grader):
            if _command(child) != SANDBOX:
                self.grader = max(self.grader, *map(high_water, [child, *_below(child)]))
            elif sandboxes:
                self.worker = max(self.worker, together([child, *_below(child)]))


def high_water(process: int) -> int:
    """Return the most resident memory that a process has had, in bytes; 0 for one that has ended."""
    return _bytes(_PROC / str(process) / "status", "VmHWM")


def together(processes: list[int]) -> int:
    """Return what processes that were forked from one another hold, in bytes.

    Of a page that some of them share each has its part (`Pss_Anon`). Pages of files, libraries above all, which the
    processes of other sandboxes share too, count whole, as those of the one with the most of them.
    """
    own = sum(_bytes(_PROC / str(process) / "smaps_rollup", "Pss_Anon") for process in processes)
    files = max((_bytes(_PROC / str(process) / "status", "RssFile") for process in processes), default=0)
    return own + files


def children(process: int) -> Iterator[int]:
    """Yield the processes that a process has started and that have not ended."""
    for task in (_PROC / str(process) / "task").glob("*/children"):
        yield from map(int, _read(task).split())


def _below(process: int) -> Iterator[int]:
    for child in children(process):
        yield child
        yield from _below(child)


def _command(process: int) -> str:
    return _read(_PROC / str(process) / "comm").strip()


def _bytes(path: Path, field: str) -> int:
    for line in _read(path).splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return ""
