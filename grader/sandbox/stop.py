"""How one thread stops, at once, the runs that others wait for."""

import os
import weakref


class Stopped(Exception):
    """A run was stopped from outside before its end; nothing of it is left."""


class StopSignal:
    """Set once, from any thread or signal handler; every run that was given it ends with `Stopped`.

    It is a pipe in which a byte lies from then on: whoever waits for other pipes can wait for it beside them, by
    its `fileno`. Any number of threads may share one.
    """

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        self._set = False
        weakref.finalize(self, _close, self._reading, self._writing)

    def set(self) -> None:
        """Stop every run that has this signal, and every later one before it starts."""
        if not self._set:
            self._set = True
            os.write(self._writing, b"!")

    def is_set(self) -> bool:
        """Return whether it was set."""
        return self._set

    def fileno(self) -> int:
        """Return a file descriptor that is readable once the signal is set."""
        return self._reading


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
