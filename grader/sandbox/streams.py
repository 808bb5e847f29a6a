"""Reads the pipes of a process, bounded in bytes and time, without ever waiting for one of them alone."""

import os
import selectors
import time
from collections.abc import Mapping
from dataclasses import dataclass

_CHUNK = 1 << 18


@dataclass(frozen=True)
class Readings:
    """What came from each pipe, and whether time or room ran out before their ends."""

    content: dict[str, bytes]
    timed_out: bool = False
    overflowed: str | None = None  # the group whose room ran out


def open_pipes(*names: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the reading and the writing ends of new pipes, by name."""
    pairs = {name: os.pipe() for name in names}
    return {name: pair[0] for name, pair in pairs.items()}, {name: pair[1] for name, pair in pairs.items()}


def close_all(descriptors: Mapping[str, int]) -> None:
    """Close them."""
    for descriptor in descriptors.values():
        os.close(descriptor)


def read_pipes(pipes: Mapping[str, int], groups: Mapping[str, tuple[str, int]], deadline: float) -> Readings:
    """Read every pipe to its end and close it.

    `groups` gives each pipe the name of a group and the bytes that its group may send together; `deadline`
    is a moment of `time.monotonic`. Reading stops at once when either is passed; what came is returned, cut at
    the group's room.
    """
    content: dict[str, list[bytes]] = {name: [] for name in pipes}
    room = dict(groups.values())
    timed_out, overflowed = False, None
    with selectors.DefaultSelector() as selector:
        for name, descriptor in pipes.items():
            selector.register(descriptor, selectors.EVENT_READ, name)
        while selector.get_map() and overflowed is None:
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready or time.monotonic() > deadline:
                timed_out = True
                break
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fd)
                    continue
                group = groups[key.data][0]
                content[key.data].append(chunk[: room[group]])
                room[group] -= len(chunk)
                if room[group] < 0:
                    overflowed = group
                    break
    close_all(pipes)
    return Readings({name: b"".join(chunks) for name, chunks in content.items()}, timed_out, overflowed)
