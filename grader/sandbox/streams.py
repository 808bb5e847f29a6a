"""Reads the pipes of a process, bounded in bytes and time, without ever waiting for one of them alone."""

import contextlib
import os
import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from grader.sandbox.stop import StopSignal

_CHUNK = 1 << 18
# What lay in the pipes when time ran out is read: at most 1 MiB in each (/proc/sys/fs/pipe-max-size), and its end.
_LATE_LOOKS = 6


@dataclass(frozen=True)
class Readings:
    """What came from each pipe, and what ended the reading before their ends."""

    content: dict[str, bytes]
    timed_out: bool = False
    overflowed: str | None = None  # the group whose room ran out
    stopped: bool = False


def open_pipes(*names: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the reading and the writing ends of new pipes, by name."""
    pairs = {name: os.pipe() for name in names}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def close_all(descriptors: Mapping[str, int]) -> None:
    """Close them."""
    for descriptor in descriptors.values():
        os.close(descriptor)


def never(sizes: Mapping[str, int]) -> bool:
    """Return False: of what a process sends, nothing says that it has ended."""
    return False


def read_pipes(
    pipes: Mapping[str, int],
    groups: Mapping[str, tuple[str, int]],
    deadline: float,
    *,
    ended: Callable[[Mapping[str, int]], bool] = never,
    stop: StopSignal | None = None,
) -> Readings:
    """Read every pipe to its end and close it.

    `groups` gives each pipe the name of a group and the bytes that its group may send together; `deadline`
    is a moment of `time.monotonic`. Reading stops at once when either is passed, or `stop` is set; what came is
    returned, cut at the group's room. What lies in the pipes at the deadline came in time, also where this
    process slept past it (Ctrl-Z). `ended` is told the bytes of each pipe so far: once it says that the process
    has come to its end, the deadline is no more.
    """
    content: dict[str, list[bytes]] = {name: [] for name in pipes}
    sizes = dict.fromkeys(pipes, 0)
    room = dict(groups.values())
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
                group = groups[key.data][0]
                content[key.data].append(chunk[: room[group]])
                sizes[key.data] += len(chunk)
                room[group] -= len(chunk)
                if room[group] < 0:
                    overflowed = group
                    break
    whole = {name: b"".join(chunks) for name, chunks in content.items()}
    return Readings(whole, timed_out and bool(unfinished), overflowed, stopped)
