"""Folders with their own file system, in a mount namespace that is invisible to the rest of this machine."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faults.lab import Absent

_TMPFS = 'mount -t tmpfs -o size="$2" tmpfs "$1"'
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'


@dataclass(frozen=True)
class Disk:
    """A small disk: at `folder` for commands that begin with `enter`, and at `inside` for this process."""

    folder: Path
    inside: Path
    enter: tuple[str, ...]

    def fill(self, room: int) -> None:
        """Fill the disk with one file until this many bytes are free."""
        filler = self.inside / ".filler"
        filler.unlink(missing_ok=True)
        free = os.statvfs(self.inside)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))

    def empty(self) -> None:
        """Remove the file again."""
        (self.inside / ".filler").unlink()


@contextmanager
def mounted(folder: Path, size: int | None) -> Iterator[Disk]:
    """Mount a small disk of `size` bytes on a folder. With None, make the folder read-only.

    Raises `Absent` if this machine does not allow namespaces.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        raise Absent("unshare and nsenter (util-linux) are not installed")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    script = f"{_READ_ONLY if size is None else _TMPFS} && echo ready && exec sleep 3600"
    words = ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(folder), str(size)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stderr is not None
        try:
            if holder.stdout.readline() != "ready\n":
                raise Absent(f"no mount namespace here: {holder.stderr.read().strip()}")
            as_user = ("--user", "--preserve-credentials") if user else ()
            enter = ("nsenter", "--target", str(holder.pid), *as_user, "--mount", "--")
            yield Disk(folder, Path(f"/proc/{holder.pid}/root{folder.resolve()}"), enter)
        finally:
            holder.kill()
