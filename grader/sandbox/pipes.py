"""Connections to a sandboxed process: sealed input files, bounded reading of its pipes, and the stop signal."""

import contextlib
import fcntl
import os
import selectors
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_CHUNK = 1 << 18
# After the deadline, read what already lies in the pipes: at most 1 MiB in each (/proc/sys/fs/pipe-max-size).
_LATE_LOOKS = 6


class Stopped(Exception):
    """A `StopSignal` ended a run; nothing of the run is left."""


class StopSignal:
    """A flag that any thread or signal handler may set once; every run that has it then raises `Stopped`.

    It is a pipe that becomes readable when it is set, so that a thread can wait for it and for other pipes at once.
    Many threads may share one signal.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._set = False
        weakref.finalize(self, close_all, {"reading": self._reading, "writing": self._writing})

    def set(self) -> None:
        """Stop every run that has this signal, and every later one before it starts."""
        if not self._set:
            self._set = True
            os.write(self._writing, b"!")

    def is_set(self) -> bool:
        """Return whether `set` was called."""
        return self._set

    def fileno(self) -> int:
        """Return a file descriptor that is readable once the signal is set."""
        return self._reading


class SealedFiles(contextlib.ExitStack):
    """Files in memory that nobody can change; the end of the `with` block closes them."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptors: list[int] = []

    def keep(self, content: bytes) -> int:
        """Store the content in a new file and return its descriptor, positioned at the start."""
        descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.callback(os.close, descriptor)
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        os.lseek(descriptor, 0, os.SEEK_SET)
        self.descriptors.append(descriptor)
        return descriptor


@dataclass(frozen=True)
class Readings:
    """The bytes from each pipe, and what ended the reading early, if anything did."""

    content: dict[str, bytes]
    timed_out: bool = False
    overflowed: str | None = None  # the pipe that brought more bytes than it may
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Whether every pipe was read to its end."""
        return not (self.timed_out or self.overflowed or self.stopped)


def open_pipes(*names: str) -> tuple[dict[str, int], dict[str, int]]:
    """Open a pipe for each name; return the reading ends and the writing ends."""
    pairs = {name: os.pipe() for name in names}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def close_all(descriptors: Mapping[str, int]) -> None:
    """Close all descriptors."""
    for descriptor in descriptors.values():
        os.close(descriptor)


@contextlib.contextmanager
def passed_on(reading: Mapping[str, int], writing: Mapping[str, int]) -> Iterator[None]:
    """Close our writing ends after the block has given them to a process; on an error close the reading ends too."""
    try:
        yield
    except BaseException:
        close_all(reading)
        raise
    finally:
        close_all(writing)


def read_pipes(
    pipes: Mapping[str, int],
    rooms: Mapping[str, int],
    deadline: float,
    *,
    ended: Callable[[Mapping[str, int]], bool] = lambda sizes: False,
    stop: StopSignal | None = None,
) -> Readings:
    """Read all pipes at the same time until their ends, and close them.

    Reading stops when a pipe brings more bytes than it has room for, at `deadline` (a time of `time.monotonic`), or
    when `stop` is set. Bytes that lie in the pipes at the deadline came in time, even if this process slept past it
    (Ctrl-Z). `ended` receives the bytes read so far by pipe; once it returns True the process has ended and the
    deadline no longer counts.
    """
    content: dict[str, list[bytes]] = {name: [] for name in pipes}
    sizes = dict.fromkeys(pipes, 0)
    timed_out, overflowed, stopped, looks = False, None, False, _LATE_LOOKS
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        stack.callback(close_all, pipes)
        for name, descriptor in pipes.items():
            selector.register(descriptor, selectors.EVENT_READ, name)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        unfinished = set(pipes)
        while unfinished and overflowed is None and not (timed_out or stopped):
            over = ended(sizes)
            now = time.monotonic()
            ready = selector.select(None if over else max(0.0, deadline - now))
            if now > deadline and not over:
                looks -= 1
                timed_out = not ready or not looks
            for key, _ in ready:
                if key.data is None:
                    stopped = True
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                    unfinished.remove(key.data)
                content[key.data].append(chunk[: rooms[key.data] - sizes[key.data]])
                sizes[key.data] += len(chunk)
                if sizes[key.data] > rooms[key.data]:
                    overflowed = key.data
                    break
    whole = {name: b"".join(chunks) for name, chunks in content.items()}
    return Readings(whole, timed_out and bool(unfinished), overflowed, stopped)
