"""Locks on folders. The kernel releases them however their holder ends, so no lock is ever stale."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path, *, shared: bool = False, wait: bool = False) -> Iterator[bool]:
    """Hold a lock on a folder, exclusive or `shared`, and yield whether it is held.

    It is not held if somebody else has it and `wait` is false. Nothing is written: the lock is on the folder itself.
    A file system without locks admits everyone. Raises `OSError` if the folder is missing or cannot be read.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
            held = True
        except BlockingIOError:
            held = False
        except OSError:  # ENOLCK, ENOSYS, EOPNOTSUPP: the file system has no locks
            held = True
        yield held
    finally:
        os.close(descriptor)
