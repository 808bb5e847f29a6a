"""Define errors that end a command without a traceback, and quote untrusted text safely in messages."""

import difflib
import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_REMEDIES = {
    errno.ENOSPC: "free some space on that disk, or choose a folder on another disk",
    errno.EDQUOT: "free some space in your quota, or choose a folder on another disk",
    errno.EACCES: "choose a folder that you may write to, or change its permissions",
    errno.EPERM: "choose a folder that you may write to, or change its permissions",
    errno.EROFS: "choose a folder on a disk that can be written to",
    errno.ENOTDIR: "part of that path is a file, so choose another folder",
    errno.ENOENT: "check the name of the folder",
    errno.EISDIR: "move that folder away",
    errno.EEXIST: "move the existing file away, or choose another folder",
    errno.EBUSY: "choose a folder inside that folder",
    errno.EIO: "check that disk",
    errno.ELOOP: "fix the symbolic links in that path",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
}


class CommandError(Exception):
    """An error that ends a command without a traceback, with the exit status `exit_code` and the message `shown`."""

    exit_code = 2

    def shown(self, program: str) -> str:
        """Return the lines for standard error; `program` is the name of the command."""
        return f"Error: {self}"


class UserError(CommandError):
    """An error that the user can fix. The message says what happened, where, and what to do."""


class Stopped(CommandError):
    """Raised if the user stopped the command. The message says when, and how to continue."""

    def shown(self, program: str) -> str:
        """Return the message without the word "Error", because stopping a command is not an error."""
        return str(self)


class ChildFault(CommandError):
    """Raised if a bug in trainwreck ended a child process. The traceback of the bug is on standard error."""

    exit_code = 3

    def shown(self, program: str) -> str:
        """Return the message, with the request to report the bug."""
        return f"{program}: {self}. Please report this bug."


def printable(text: object, limit: int = 80) -> str:
    """Return at most `limit` characters of an untrusted text, with invisible characters and line ends escaped."""
    start = str(text)[: limit + 1]
    words = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in start)
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


@contextmanager
def name_place(place: Path) -> Iterator[None]:
    """If an `OSError` is raised that names no file, such as a failed write, add `place` as its file name."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(place)
        raise


def from_os_error(error: OSError) -> UserError | None:
    """Return a `UserError` with a remedy for an `OSError` that the user can fix.

    Return None for any other `OSError`.
    """
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    place = "" if error.filename is None else f" at {error.filename}"
    return UserError(f"{error.strerror}{place}: {remedy}.")


def suggestion(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Return "did you mean X?" for a similar known name. If there is none, return `otherwise` or all known names."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else otherwise or f"choose from {', '.join(known)}."
