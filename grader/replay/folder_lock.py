"""Locks on folders: the kernel lets go of them however their holder ends, so that none is ever stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path, *, shared: bool = False, wait: bool = False) -> Iterator[bool]:
    """Hold a folder, alone or `shared` with others who share it, and tell whether it is held.

    It is not where somebody else holds it and this does not `wait`. Nothing is written for it: the lock is on the
    folder itself. A file system that knows no locks takes every holder. Raises `OSError` where there is no such
    folder, or it cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
            held = True
        except BlockingIOError:
            held = False
        except OSError:  # ENOLCK, ENOSYS, EOPNOTSUPP: nobody could be kept out
            held = True
        yield held
    finally:
        os.close(descriptor)
