"""The one kind of error a person can mend; everything else is a fault of ours and keeps its traceback."""

import errno

_REMEDIES = {
    errno.ENOSPC: "free some space on that disk, or choose a folder on another one",
    errno.EDQUOT: "free some space in your quota, or choose a folder on another disk",
    errno.EACCES: "choose a folder that you may write to, or change its permissions",
    errno.EPERM: "choose a folder that you may write to, or change its permissions",
    errno.EROFS: "choose a folder on a disk that can be written to",
    errno.ENOTDIR: "choose a folder whose parents are folders too",
    errno.ENOENT: "check the name of the folder",
    errno.EISDIR: "move that folder away",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
}


class UserError(Exception):
    """A user's mistake: one sentence that says what, where and what to do. Commands print it and exit 2."""


def from_os_error(error: OSError) -> UserError | None:
    """Return the sentence for an error of the file system that a person can mend, or None for any other."""
    remedy = _REMEDIES.get(error.errno or 0)
    if remedy is None:
        return None
    place = f" at {error.filename}" if error.filename else ""
    return UserError(f"{error.strerror}{place}: {remedy}.")
