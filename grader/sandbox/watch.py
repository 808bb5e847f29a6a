"""Measure the resources of a run, describe how it ended, and collect its files.

`worker.py` uses this module inside the sandbox, where both files are in the same folder and only the standard library
is available.
"""

import os
import signal
import stat
import time
from collections.abc import Collection
from typing import Any, Literal

RunStatus = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]
# How a run ended: its status, the exit status, the signal that killed it, and a sentence.
Ending = tuple[RunStatus, int | None, int | None, str]

SCRATCH = "/scratch"
# The folders into which a run may write: the scratch folder, and two small folders that libraries need.
WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # noqa: S108
# A file system with less free space than this counts as full, because the last write failed or was incomplete.
FULL_BYTES = 4096
MAX_DEPTH = 8
MAX_NAME_BYTES = 1024
_TICKS = os.sysconf("SC_CLK_TCK")


class Meter:
    """Measures the resources that all processes of a run use together, every few milliseconds.

    The time of a run is the processor time of all its processes, plus the time in which all of them sleep. Waiting for
    a processor or a disk does not count, so the sum is the same on a busy machine. The launcher's own time does not
    count, because it is not part of the run. But the launcher waits for the run's ended processes, so their time
    counts.
    """

    def __init__(self, job: dict[str, Any], launcher: str, others: Collection[str] = ()) -> None:
        self._job = job
        self._launcher = launcher
        self._others = others
        self._looked = time.monotonic()
        self._computed = 0.0
        self._slept = 0.0

    def over_limit(self) -> Ending | None:
        """Measure once. Return the ending of the run if it exceeds a limit, and None otherwise."""
        job = self._job
        processes, self._computed, memory, awake = usage(job["processes"], self._launcher, self._others)
        now = time.monotonic()
        self._slept += 0.0 if awake else now - self._looked
        self._looked = now
        if processes > job["processes"]:
            return "ML", None, None, f"it started more than {job['processes']} processes"
        if self.seconds() > job["seconds"]:
            return "TO", None, None, self._spent()
        if memory > job["memory_bytes"]:
            return "ML", None, None, f"it used more than {job['memory_bytes'] >> 20} MiB of memory"
        for folder in WRITABLE:
            room = os.statvfs(folder)
            if room.f_bavail * room.f_frsize < FULL_BYTES:
                return "OL", None, None, f"it filled {folder}"
            if room.f_files - room.f_ffree > job["scratch_files"]:
                return "OL", None, None, f"it made more than {job['scratch_files']} files in {folder}"
        return None

    def _spent(self) -> str:
        return "it used up its processor time" if self._computed > self._slept else "it slept too long"

    def seconds(self) -> float:
        """Return the time of the run in seconds; during the run, return the time up to the last measurement."""
        ended = os.times()
        return max(self._computed, ended.children_user + ended.children_system) + self._slept


def usage(most: int, launcher: str, others: Collection[str] = ()) -> tuple[int, float, int, bool]:
    """Return a run's number of processes and threads, processor seconds and memory, and whether a process is awake.

    The count stops after `most` processes, because a fork bomb creates new processes during the count.

    launcher, others: process numbers in /proc. For the launcher, only the time of its ended children counts. The
    processes with the numbers in `others` do not count. When a process ends, its processor time is added to the process
    that waited for it. Some process always waits for it, because the launcher waits for orphans, and the seccomp filter
    does not let a run ignore SIGCHLD.
    """
    count = ticks = memory = 0
    awake = False
    for entry in os.listdir("/proc"):
        if count > most:
            break
        if not entry.isdecimal() or entry in others:
            continue
        try:
            fields = _fields(f"/proc/{entry}/stat")
            ticks += int(fields[13]) + int(fields[14])  # children's user and system time
            if entry != launcher:
                threads = int(fields[17])
                count += threads
                ticks += int(fields[11]) + int(fields[12])
                memory += memory_of(_read(f"/proc/{entry}/status"))
                awake = awake or _is_awake(fields) or (threads > 1 and _any_awake(f"/proc/{entry}/task"))
        except OSError:
            continue  # the process has just ended
    return count, ticks / _TICKS, memory, awake


def _fields(path: str) -> list[bytes]:
    """Return the fields after the name in the `stat` file of a process or thread (proc_pid_stat(5)); state is first."""
    return _read(path).rpartition(b")")[2].split()


def _is_awake(fields: list[bytes]) -> bool:
    # A thread is awake if it runs, waits for a processor, or waits for a disk.
    return fields[0] in (b"R", b"D")


def _any_awake(tasks: str) -> bool:
    return any(_is_awake(_fields(f"{tasks}/{number}/stat")) for number in os.listdir(tasks))


def memory_of(status: bytes) -> int:
    """Return the memory of a process in bytes, from its `/proc/<pid>/status`; 0 for an ended process.

    Allocated memory counts, even if it is swapped out. Page tables count, because a process can fill memory with page
    tables by only reading memory. Files and libraries do not count.
    """
    lines = (line.split() for line in status.splitlines() if line.startswith((b"RssAnon:", b"VmSwap:", b"VmPTE:")))
    return sum(int(words[1]) * 1024 for words in lines)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def ending_of_code(code: int) -> Ending:
    """Return the ending of a run from its exit status, which is negative for a signal."""
    if code == -signal.SIGXCPU:
        return "TO", None, -code, "it used up its processor time"
    if code == -signal.SIGXFSZ:
        return "OL", None, None, "it wrote a file that is larger than allowed"
    if code < 0:
        return "SG", None, -code, f"it was killed by signal {-code}"
    if code > 0:
        return "RE", code, None, f"it ended with exit status {code}"
    return "OK", 0, None, ""


class TooMuch(Exception):
    """Raised if the results of a run exceed a limit."""


def collect_if_ended(ending: Ending, scratch: str, job: dict[str, Any]) -> tuple[Ending, list[tuple[str, bytes]]]:
    """Return the ending of a run and, if it ended by itself, its files in `out/`.

    If there are too many files, the returned ending says so instead.
    """
    if ending[0] not in ("OK", "RE", "SG"):
        return ending, []
    try:
        return ending, collect(f"{scratch}/out", job["scratch_files"], job["result_bytes"])
    except TooMuch as excess:
        return ("OL", ending[1], ending[2], str(excess)), []


def collect(folder: str, most: int, room: int) -> list[tuple[str, bytes]]:
    """Return (path, content) of the regular files in the folder and its subfolders, sorted. Links are left out.

    All processes of the run are dead, so files cannot change while they are read. Raises `TooMuch` for more than `most`
    entries, more than `room` bytes, more than `MAX_DEPTH` levels, and for a name that is too long or not UTF-8.
    """
    files: list[tuple[str, bytes]] = []
    if not os.path.isdir(folder) or os.path.islink(folder):
        return []
    os.chmod(folder, 0o700)
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        for name in sorted(os.listdir(f"{folder}/{place}")):
            path = f"{place}{name}"
            most -= 1
            if most < 0:
                raise TooMuch("it left too many files")
            try:
                if len(path.encode()) > MAX_NAME_BYTES:
                    raise TooMuch("it left a file whose name is too long")
            except UnicodeEncodeError:
                raise TooMuch("it left a file whose name is not UTF-8") from None
            status = os.lstat(f"{folder}/{path}")
            if stat.S_ISDIR(status.st_mode):
                if depth == MAX_DEPTH:
                    raise TooMuch("it left folders nested too deeply")
                os.chmod(f"{folder}/{path}", 0o700)
                waiting.append((f"{path}/", depth + 1))
            elif stat.S_ISREG(status.st_mode):
                room -= status.st_size
                if room < 0:
                    raise TooMuch("its results are larger than allowed")
                os.chmod(f"{folder}/{path}", 0o600)
                files.append((path, _whole(f"{folder}/{path}", status.st_size)))
    return sorted(files)


def _whole(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size)
