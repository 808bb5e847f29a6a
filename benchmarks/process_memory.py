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

    leader: the resident memory of the grader's first process, by the kernel's own high-water mark. grader: that of all
    its processes together that are in no sandbox, each page counted once. worker: the same of all in one sandbox.
    """

    leader: int = 0
    grader: int = 0
    worker: int = 0

    def look(self, leader: int, *, below: bool) -> None:
        """Look at the process with this number, and at those `below` it only where that is wanted."""
        self.leader = max(self.leader, high_water(leader))
        if below:
            own, sandboxes = _parted(leader)
            self.grader = max(self.grader, together(own))
            self.worker = max([self.worker, *map(together, sandboxes)])


def _parted(process: int) -> tuple[list[int], list[list[int]]]:
    """Return a process with those below it that are in no sandbox, and those of each sandbox."""
    own, sandboxes = [process], []
    for child in children(process):
        if _command(child) == SANDBOX:
            sandboxes.append([child, *_below(child)])
        else:
            others, theirs = _parted(child)
            own += others
            sandboxes += theirs
    return own, sandboxes


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
