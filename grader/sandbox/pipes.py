"""The connection to a sandboxed process: its input files, its pipes (read up to a limit), and the stop signal."""

import contextlib
import os
import selectors
import time
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_CHUNK = 1 << 18
# The longest time to wait for bytes, in seconds. If more time passes between two checks, this process was paused.
_LOOK_SECONDS = 1.0


class SandboxStopped(Exception):
    """Raised if a `StopSignal` has ended a run. All processes of the run are dead then."""


class StopSignal:
    """A flag that any thread or signal handler may set once. Every run with this signal then raises `SandboxStopped`.

    The signal is a pipe that becomes readable when the signal is set. So a thread can wait for the signal and for other
    pipes at the same time. Several threads may share one signal.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._set = False
        weakref.finalize(self, close_all, {"reading": self._reading, "writing": self._writing})

    def set(self) -> None:
        """Stop every run that uses this signal, and prevent later runs from starting."""
        if not self._set:
            self._set = True
            os.write(self._writing, b"!")

    def is_set(self) -> bool:
        """Return whether `set` was called."""
        return self._set

    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when the signal is set."""
        return self._reading


class MemoryFiles(contextlib.ExitStack):
    """Files in memory, which are closed at the end of the `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.descriptors: list[int] = []

    def keep(self, *contents: bytes) -> int:
        """Store the contents one after the other in a new file. Return its file descriptor, positioned at the start."""
        file = self.enter_context(os.fdopen(os.memfd_create("sandbox"), "w+b"))
        file.writelines(contents)
        file.seek(0)
        self.descriptors.append(file.fileno())
        return file.fileno()


@dataclass(frozen=True)
class Readings:
    """The bytes from each pipe, and the reason why the reading ended early, if it did."""

    content: dict[str, bytes]
    timed_out: bool = False
    overflowed: str | None = None  # the pipe that sent more bytes than allowed
    stopped: bool = False

    @property
    def complete(self) -> bool:
        """Whether all pipes were read to their ends."""
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
def pass_on(reading: Mapping[str, int], writing: Mapping[str, int]) -> Iterator[None]:
    """Close the writing ends here after the `with` block has passed them to a child. After an error, close all ends."""
    try:
        yield
    except BaseException:
        close_all(reading)
        raise
    finally:
        close_all(writing)


def read_pipes(
    pipes: Mapping[str, int], rooms: Mapping[str, int], seconds: float, stop: StopSignal | None = None
) -> Readings:
    """Read all pipes at the same time until their ends, close them, and return the bytes.

    Reading stops early if a pipe sends more bytes than its limit in `rooms`, after `seconds`, or if `stop` is set. Time
    in which this process itself is paused (Ctrl-Z) does not count.
    """
    content: dict[str, list[bytes]] = {name: [] for name in pipes}
    sizes = dict.fromkeys(pipes, 0)
    timed_out, overflowed, stopped = False, None, False
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        stack.callback(close_all, pipes)
        for name, descriptor in pipes.items():
            selector.register(descriptor, selectors.EVENT_READ, name)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        unfinished = set(pipes)
        while unfinished and overflowed is None and not (timed_out or stopped):
            begun = time.monotonic()
            ready = selector.select(max(0.0, min(seconds, _LOOK_SECONDS)))
            seconds -= min(time.monotonic() - begun, _LOOK_SECONDS)
            timed_out = seconds < 0 and not ready
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
    return Readings(whole, timed_out, overflowed, stopped)
