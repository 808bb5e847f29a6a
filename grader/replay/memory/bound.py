"""Keeps the memory within its limit: at the end of a run, what was used longest ago goes first."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grader.replay.memory.entries import Entry, Removal, entries_in, remove
from grader.replay.memory.last_use import A_DAY, was_used
from harness.errors import UserError

LIMIT_VARIABLE = "TRAINWRECK_REPLAYS_LIMIT"
# A replay takes 75 kB, a score 21 kB, a tarball of the self-check 3 MB: a whole self-check some 0.5 GB, a course of
# 2,100 submissions 0.1 GB.
DEFAULT_LIMIT = 2 * 10**9  # bytes

_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(MB|GB|TB)", re.IGNORECASE | re.ASCII)


def chosen_limit() -> int:
    """Return how many bytes may be remembered: $TRAINWRECK_REPLAYS_LIMIT, else 2 GB.

    Raises `UserError` where the variable holds no size.
    """
    chosen = os.environ.get(LIMIT_VARIABLE)
    if not chosen:
        return DEFAULT_LIMIT
    size = _SIZE.fullmatch(chosen.strip())
    if size is None:
        raise UserError(f"{LIMIT_VARIABLE} is {chosen[:40]!r}, which is no size: write 500MB or 2.5GB, say.")
    return round(float(size[1]) * _UNITS[size[2].upper()])


@contextmanager
def bounded(memory: Path) -> Iterator[None]:
    """Keep a memory within the limit that was chosen, once the work of this run is done or has failed.

    What the run has used stays. Raises `UserError`, before any work, where the limit is no size. A memory that
    cannot be written to stays as it is.
    """
    limit = chosen_limit()
    try:
        yield
    finally:
        with suppress(OSError):
            drop_oldest(memory, limit, keep=was_used)


def drop_oldest(memory: Path, limit: int, *, keep: Callable[[Path], bool]) -> Removal:
    """Remove what was used longest ago until at most `limit` bytes are left, but nothing that is to be kept.

    Nothing of a kind that another grader writes right now is removed: the end of its run will do. Raises `OSError`
    where the memory cannot be read.
    """
    entries = entries_in(memory)
    excess = sum(entry.bytes for entry in entries) - limit
    ahead = time.time() + A_DAY
    outdated = []
    for entry in sorted(entries, key=lambda entry: _rank(entry, ahead)):
        if excess <= 0:
            break
        if not keep(entry.path):
            outdated.append(entry)
            excess -= entry.bytes
    return remove(memory, outdated, wait=False)


def _rank(entry: Entry, ahead: float) -> tuple[bool, int, str]:
    """Return what to sort by.

    A use that lies ahead tells nothing but that a clock went wrong: unless it comes first, it would stay for ever.
    And where it is this clock that is wrong, those of before keep their order, and come before those of today.
    """
    return entry.used <= ahead, entry.used_ns, entry.path.name
