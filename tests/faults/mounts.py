"""Folders with a file system of their own, in a mount namespace that this machine does not see."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType

from faults.fault import Absent

_TMPFS = 'mount -t tmpfs -o size="$2" tmpfs "$1"'
_READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'


class Mounted:
    """A folder that is a small disk of `size` bytes, or with `size` None one that cannot be written to.

    It is so for commands that `enter`, and below `inside` for this process. Raises `Absent` where namespaces are
    not to be had.
    """

    def __init__(self, folder: Path, size: int | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            raise Absent("unshare and nsenter (util-linux) are not installed")
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        script = f"{_READ_ONLY if size is None else _TMPFS} && echo ready && exec sleep 3600"
        self._holder = subprocess.Popen(
            ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(folder), str(size)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None and self._holder.stderr is not None
        if self._holder.stdout.readline() != "ready\n":
            said = self._holder.stderr.read().strip()
            self.close()
            raise Absent(f"no mount namespace here: {said}")
        process = str(self._holder.pid)
        as_user = ["--user", "--preserve-credentials"] if user else []
        self.enter: tuple[str, ...] = ("nsenter", "--target", process, *as_user, "--mount", "--")
        self.inside = Path(f"/proc/{process}/root{folder.resolve()}")

    def fill(self, room: int) -> None:
        """Leave so many bytes free, by one file."""
        filler = self.inside / ".filler"
        filler.unlink(missing_ok=True)
        free = os.statvfs(self.inside)
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - room))

    def empty(self) -> None:
        """Take the file away again."""
        (self.inside / ".filler").unlink()

    def close(self) -> None:
        """Let go of the namespace."""
        self._holder.send_signal(signal.SIGKILL)
        self._holder.communicate()

    def __enter__(self) -> "Mounted":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
