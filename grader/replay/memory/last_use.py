"""When an entry was last used: the time of its file, which reading sets anew, at most once a day."""

import os
import time
from contextlib import suppress
from pathlib import Path

A_DAY = 86_400.0  # seconds

# All that this process has read or written: a run is one process, and what it needed, the next one needs.
_used: set[Path] = set()


def note_use(path: Path) -> None:
    """Note that an entry was read or written. Where its time cannot be set, it keeps the old one.

    A time that lies ahead was set by a clock that went wrong, and is set anew as well.
    """
    _used.add(path)
    with suppress(OSError):
        if abs(time.time() - path.stat().st_mtime) > A_DAY:
            os.utime(path)


def was_used(path: Path) -> bool:
    """Say whether this process has read or written the entry at this path."""
    return path in _used
