"""The launcher: process 1 of the sandbox, and the only process in it that runs our code.

As process 1 of its process namespace it cannot be killed or stopped from inside, and it makes itself undumpable, so
that the kernel lets no process inside read or write its memory or its open files. It starts the command under limits
and watches the sum over all processes several times a second. When the command ends it kills everything else, and
only then packs the regular files of `out/` into the pipe to the grader. It uses only parts of the standard library
that load quickly, neither `json` nor `subprocess`; the grader passes the job to it, marshalled, in an open file.

`grader.sandbox` passes this source text into the sandbox, and starts it as a script to limit a trusted command.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # `signal` without its enumerations, which load slowly
import ctypes
import marshal
import os
import resource
import stat
import sys
import time

TYPE_CHECKING = False  # like `typing.TYPE_CHECKING`; importing `typing` takes longer than all imports here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, NoReturn

    Status = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]
    Ending = tuple[Status, int | None, int | None, str]

SCRATCH = "/scratch"
# The folders that a run may write: the scratch folder, and two small folders that libraries expect.
WRITABLE = (SCRATCH, "/tmp", "/dev/shm")  # noqa: S108
POLL_SECONDS = 0.02
# A file system with less room than this is full: the last write failed, or was cut short.
FULL_BYTES = 4096
MAX_DEPTH = 8
MAX_NAME_BYTES = 1024
_PR_SET_DUMPABLE = 4
_TICKS = os.sysconf("SC_CLK_TCK")


def main(job_descriptor: int, pipe: int) -> None:
    """Run the job and send its outcome to the pipe (`grader.sandbox.result.parse_report` reads it)."""
    with os.fdopen(job_descriptor, "rb") as file:
        job = marshal.loads(file.read())  # noqa: S302 - from the grader, sealed before the sandbox starts
    # The command inherits its input and output only, not the files that bubblewrap left open.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor > 2 and os.path.exists(f"/proc/self/fd/{descriptor}"):  # noqa: PTH110
            os.set_inheritable(descriptor, False)
    for number in (_signal.SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(
        _signal.SIG_BLOCK, [_signal.SIGCHLD]
    )  # `run` waits for it between two looks at the limits
    if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")
    serve(job, pipe, run)


def serve(job: dict[str, Any], pipe: int, run: Callable[[dict[str, Any]], Ending]) -> None:
    """Run the job with `run`, then send its outcome and its files."""
    os.mkdir(f"{SCRATCH}/out")  # noqa: PTH102
    send(pipe, b"S")
    files: list[tuple[str, bytes]] = []
    try:
        (status, code, number, message), files = run_and_collect(job, run)
    except BaseException as error:
        status, code, number, message = "XX", None, None, f"the launcher failed: {error!r}"
    words = (status, "-" if code is None else code, "-" if number is None else number, message)
    send(pipe, " ".join(map(str, words)).replace("\0", " ").encode("utf-8", "replace") + b"\0")
    for name, content in files:
        send(pipe, f"{len(content)} {name}\0".encode())
        send(pipe, content)
    send(pipe, b"\0")


def run_and_collect(
    job: dict[str, Any], run: Callable[[dict[str, Any]], Ending]
) -> tuple[Ending, list[tuple[str, bytes]]]:
    """Run the job; return how it ended and, if it ended by itself, the files in `out/`."""
    ending = run(job)
    kill_all()
    if ending[0] not in ("OK", "RE", "SG"):
        return ending, []
    try:
        return ending, collect(f"{SCRATCH}/out", job["scratch_files"], job["result_bytes"])
    except TooMuch as excess:
        return ("OL", ending[1], ending[2], str(excess)), []


def send(pipe: int, content: bytes) -> None:
    """Write all of the content."""
    data = memoryview(content)
    while data:
        data = data[os.write(pipe, data) :]


def run(job: dict[str, Any]) -> Ending:
    """Start the command, wait for its end or for a limit, and return how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(job, writing)
    os.close(writing)
    failure = os.read(reading, 4096)
    if failure:
        return "XX", None, None, f"{job['command'][0]} could not be started: {failure.decode()}"
    while True:
        excess = over_limit(job)
        if excess is not None:
            return excess[0], None, None, excess[1]
        code = reaped(child)
        if code is not None:
            return judge(code, job)
        _signal.sigtimedwait([_signal.SIGCHLD], POLL_SECONDS)


def _become(job: dict[str, Any], writing: int) -> NoReturn:
    try:
        os.setsid()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGCHLD])
        limit(job)
        os.execvpe(job["command"][0], job["command"], job["environment"])
    except BaseException as error:
        os.write(writing, str(error).encode()[:4000])
    os._exit(127)


def limit(job: dict[str, Any]) -> None:
    """Set the limits of the job for this process and its children; never raise a limit."""
    for name, soft, hard in job["rlimits"]:
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        given = (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most))
        resource.setrlimit(number, given)


def reaped(child: int) -> int | None:
    """Collect all ended processes, orphans too; return the wait status of `child` once it has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status
        if pid == 0:
            return None


def judge(status: int, job: dict[str, Any]) -> Ending:
    """Return how the command ended, from its wait status."""
    code = os.waitstatus_to_exitcode(status)
    too_large = code > 0 and largest_file(SCRATCH, job["scratch_files"]) >= job["file_bytes"]
    return ending_of(code, too_large)


def ending_of(code: int, too_large: bool) -> Ending:
    """Return the ending for an exit status, negative for a signal; `too_large`: a file has reached its limit."""
    if code == -_signal.SIGXCPU:
        return "TO", None, -code, "it used up its processor time"
    if code == -_signal.SIGXFSZ or too_large:
        return "OL", max(code, 0) or None, None, "it wrote a file larger than is allowed"
    if code < 0:
        return "SG", None, -code, f"it was killed by signal {-code}"
    if code > 0:
        return "RE", code, None, f"it ended with exit status {code}"
    return "OK", 0, None, ""


def over_limit(job: dict[str, Any], init: str = "1", ours: tuple[str, ...] = ()) -> tuple[Status, str] | None:
    """Return a status and a sentence if all processes together exceed a limit; `init` and `ours` as in `usage`."""
    processes, seconds, memory = usage(init, ours)
    if processes > job["processes"]:
        return "ML", f"it started more than {job['processes']} processes"
    if seconds > job["cpu_seconds"]:
        return "TO", "it used up its processor time"
    if memory > job["memory_bytes"]:
        return "ML", f"it used more than {job['memory_bytes'] >> 20} MiB of memory"
    for folder in WRITABLE:
        room = os.statvfs(folder)
        if room.f_bavail * room.f_frsize < FULL_BYTES:
            return "OL", f"it filled {folder}"
        if room.f_files - room.f_ffree > job["scratch_files"]:
            return "OL", f"it made more than {job['scratch_files']} files in {folder}"
    return None


def usage(init: str = "1", ours: tuple[str, ...] = ()) -> tuple[int, float, int]:
    """Return the number of processes and threads of the run, their processor seconds and their bytes of memory.

    Of process `init`, which is ours, only ended children count; processes in `ours` do not count at all. The processor
    time of an ended process counts for the process that waited for it. That always happens: orphans are children of
    process 1, and the seccomp filter keeps a run from ignoring SIGCHLD.
    """
    count = ticks = memory = 0
    for entry in os.listdir("/proc"):  # noqa: PTH208
        if not entry.isdecimal() or entry in ours:
            continue
        try:
            fields = _read(f"/proc/{entry}/stat").rpartition(b")")[2].split()
            status = _read(f"/proc/{entry}/status")
        except OSError:
            continue  # the process has just ended
        ticks += int(fields[13]) + int(fields[14])  # children's user and system time
        if entry != init:
            count += int(fields[17])  # threads
            ticks += int(fields[11]) + int(fields[12])
            memory += memory_of(status)
    return count, ticks / _TICKS, memory


def memory_of(status: bytes) -> int:
    """Return the bytes of memory of a process, from its `/proc/<pid>/status`; 0 for an ended process.

    Counts allocated memory, swapped out or not, and page tables: a process can fill memory with these by reading
    memory that it never writes. Files and libraries do not count.
    """
    lines = (
        line.split() for line in status.splitlines() if line.startswith((b"RssAnon:", b"VmSwap:", b"VmPTE:"))
    )
    return sum(int(words[1]) * 1024 for words in lines)


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def kill_all() -> None:
    """Kill all other processes in the namespace and wait until they are gone."""
    while True:
        try:  # noqa: SIM105 - importing `contextlib` takes longer than this whole program
            os.kill(-1, _signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def largest_file(folder: str, most: int) -> int:
    """Return the size of the largest regular file below the folder, among the first `most` readable entries."""
    largest = 0
    waiting = [folder]
    while waiting and most > 0:
        place = waiting.pop()
        try:
            names = os.listdir(place)  # noqa: PTH208
        except OSError:
            continue
        for path in (f"{place}/{name}" for name in names[:most]):
            most -= 1
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
            elif stat.S_ISREG(status.st_mode):
                largest = max(largest, status.st_size)
    return largest


class TooMuch(Exception):
    """The results exceed a limit."""


def collect(folder: str, most: int, room: int) -> list[tuple[str, bytes]]:
    """Return the paths and contents of the regular files below the folder, sorted; skip links and all else.

    No other process runs now, so nothing changes between the check and the reading. Raises `TooMuch` for more than
    `most` entries, `room` bytes or `MAX_DEPTH` levels, or for a name that is too long or not UTF-8.
    """
    files: list[tuple[str, bytes]] = []
    if not os.path.isdir(folder) or os.path.islink(folder):  # noqa: PTH112, PTH114
        return []
    os.chmod(folder, 0o700)  # noqa: PTH101
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        for name in sorted(os.listdir(f"{folder}/{place}")):  # noqa: PTH208
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
                os.chmod(f"{folder}/{path}", 0o700)  # noqa: PTH101
                waiting.append((f"{path}/", depth + 1))
            elif stat.S_ISREG(status.st_mode):
                room -= status.st_size
                if room < 0:
                    raise TooMuch("its results are larger than is allowed")
                os.chmod(f"{folder}/{path}", 0o600)  # noqa: PTH101
                files.append((path, _whole(f"{folder}/{path}", status.st_size)))
    return sorted(files)


def _whole(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(size)


def start_limited(limits: str, command: list[str]) -> None:
    """Become the command under resource limits, given in JSON: what `run_unsandboxed` starts, without a sandbox."""
    import json

    limit({"rlimits": json.loads(limits)})
    try:
        # If memory runs out, the kernel kills this process before the grader (Linux only).
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        pass
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]} could not be started: {error}")


if __name__ == "__main__":
    if sys.argv[1] == "limited":
        start_limited(sys.argv[2], sys.argv[3:])
    else:
        main(int(sys.argv[1]), int(sys.argv[2]))
