"""Errors that the user can fix, and safe quoting of untrusted text in messages. Other errors keep their traceback."""

import difflib
import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_REMEDIES = {
    errno.ENOSPC: "free some space on that disk, or choose a folder on another one",
    errno.EDQUOT: "free some space in your quota, or choose a folder on another disk",
    errno.EACCES: "choose a folder that you may write to, or change its permissions",
    errno.EPERM: "choose a folder that you may write to, or change its permissions",
    errno.EROFS: "choose a folder on a disk that can be written to",
    errno.ENOTDIR: "choose a folder whose parents are folders too",
    errno.ENOENT: "check the name of the folder",
    errno.EISDIR: "move that folder away",
    errno.EEXIST: "move that file away, or choose another folder",
    errno.EBUSY: "choose a folder inside it",
    errno.EIO: "check that disk",
    errno.ELOOP: "fix the links there",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
}


class CommandError(Exception):
    """An error that ends a command without a traceback. It knows its exit status and how to show itself."""

    exit_code = 2

    def shown(self, program: str) -> str:
        """Return the lines for standard error; `program` is the name of the command."""
        return f"Error: {self}"


class UserError(CommandError):
    """A user's mistake. The message says what happened, where, and what to do."""


class Stopped(CommandError):
    """The user stopped the command. The message says when, and how to continue."""

    def shown(self, program: str) -> str:
        """Return the message without "Error", because stopping is not an error."""
        return str(self)


class ChildFault(CommandError):
    """A child process ended because of a bug of ours. Its traceback is on standard error."""

    exit_code = 3

    def shown(self, program: str) -> str:
        """Return the message and ask for a report."""
        return f"{program}: {self}. Please report it."


def printable(text: object, limit: int = 80) -> str:
    """Return untrusted text for a message: at most `limit` characters, with invisible ones and line ends escaped."""
    start = str(text)[: limit + 1]
    words = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in start)
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


@contextmanager
def name_place(place: Path) -> Iterator[None]:
    """Add `place` to an `OSError` that names no file, such as the error of a failed write."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(place)
        raise


def from_os_error(error: OSError) -> UserError | None:
    """Return a `UserError` with a remedy for an `OSError` that the user can fix, or None for any other."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    place = "" if error.filename is None else f" at {error.filename}"
    return UserError(f"{error.strerror}{place}: {remedy}.")


def suggestion(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Return "did you mean X?" for a close match among the known names, else `otherwise`, else a list of all names."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else otherwise or f"choose from {', '.join(known)}."
