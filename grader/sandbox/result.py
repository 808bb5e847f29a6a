"""The classes for a script in the sandbox, its limits and its result, and the format of the launcher's report.

The status of a result says who caused a failure, so that a script cannot blame the grader:

- OK: the exit status was 0. RE: it was not 0. SG: a signal killed the script or its whole sandbox.
- TO: the script used up its time. ML: it used too much memory, processes or threads. OL: it wrote too much output, too
  many files or too large results, or it filled the scratch folder.
- XX: the grader or the machine failed. For example, bubblewrap or the launcher failed, the script does not exist, or
  the
  run did not end although it used little processor time.
"""

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, NonNegativeInt, ValidationError

from grader.sandbox.watch import RunStatus

MIB = 1024 * 1024
# The maximum size of a report, without the contents of files.
_REPORT_BYTES = 8 * MIB
# The first kernel version whose process limit counts only processes in the sandbox. Older kernels also count the user's
# processes outside the sandbox.
COUNTS_PROCESSES = (5, 14)
_WATCHED = ("seconds", "memory_bytes", "processes", "file_bytes", "scratch_files", "result_bytes")


@dataclass(frozen=True)
class Limits:
    """The limits for a script and all processes that it starts; most limits hold for all these processes together.

    seconds: the processor time of all processes, plus the time in which all of them sleep. This sum does not depend on
        how busy the machine is.
    wall_seconds: clock time. If a run has not ended after this time, the machine is too busy.
    memory_bytes: allocated memory and page tables, without libraries and without files in the scratch folder.
    scratch_bytes, scratch_files: the size of the scratch folder, and the number of files in it.
    file_bytes: the size of each file. output_bytes: the size of standard output, and of standard error.
    result_bytes: the size of all files that are returned.
    """

    seconds: float = 60.0
    wall_seconds: float = 300.0
    memory_bytes: int = 2048 * MIB
    processes: int = 16
    file_bytes: int = 128 * MIB
    scratch_bytes: int = 256 * MIB
    scratch_files: int = 1000
    output_bytes: int = 1 * MIB
    result_bytes: int = 64 * MIB


@dataclass(frozen=True)
class Interpreter:
    """The environment in which scripts run: Python with its options, environment variables, and visible paths.

    environment: the only environment variables that scripts get.
    visible: paths of this machine that scripts can read. Apart from these, they can read only the system's libraries.
    preload: a script with imports, which runs only once before any number of scripts.
    """

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    visible: Sequence[Path] = ()
    preload: Path | None = None


@dataclass(frozen=True)
class SandboxCommand:
    """A script to run in the sandbox.

    The script runs in a scratch folder. Its `inputs` are files in `../input/`. The files that it writes to `out/` are
    returned. Raises `ValueError` if the name of an input is not a relative path without `..`.
    """

    script: Path
    interpreter: Interpreter
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        for name in self.inputs:
            if not is_plain_path(name):
                raise ValueError(f"{name!r} is not a plain path")


@dataclass(frozen=True)
class SandboxResult:
    """The result of a script: a status, a sentence about how the script ended, and its output, which is untrusted.

    seconds: the time that the script used, in the sense of `Limits.seconds`.
    files: {path in `out/`: content}; empty unless the script ended by itself (OK, RE, SG).
    stdout, stderr: the first `Limits.output_bytes` bytes of each.
    """

    status: RunStatus
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0


def rlimits(limits: Limits) -> list[tuple[str, int, int]]:
    """Return (name in `resource`, soft limit, hard limit) for the limits that the kernel enforces for each process.

    The launcher regularly checks the sums over all processes. The limits here apply between two of its checks. They
    also limit kernel memory for open files, pipes and queued signals.
    """
    seconds = math.ceil(limits.seconds) + 1
    # Add 512 MiB, because RLIMIT_DATA also counts memory that torch reserves but never uses.
    data = limits.memory_bytes + 512 * MIB
    return [
        # At the soft limit, the kernel sends SIGXCPU, which shows the reason. At the hard limit, it sends SIGKILL,
        # which hides the reason. The time between the two limits is enough for a check by the launcher, even on a busy
        # machine.
        ("RLIMIT_CPU", seconds, seconds + 30),
        ("RLIMIT_DATA", data, data),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", 64, 64),
        ("RLIMIT_MEMLOCK", 0, 0),
        ("RLIMIT_SIGPENDING", 64, 64),
        ("RLIMIT_CORE", 0, 0),
    ]


@cache
def kernel_release() -> tuple[int, ...]:
    """Return the first two numbers of the kernel's version."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return tuple(map(int, found.groups())) if found else (0, 0)


def launcher_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits in the format for the launcher inside the sandbox (`worker.py`)."""
    processes = []
    if kernel_release() >= COUNTS_PROCESSES:
        # Allow twice the number of processes, so that the launcher notices and reports too many processes. The kernel
        # does not count processes of root.
        processes = [("RLIMIT_NPROC", 2 * limits.processes, 2 * limits.processes)]
    return {"rlimits": rlimits(limits) + processes, **{name: getattr(limits, name) for name in _WATCHED}}


def pipe_rooms(limits: Limits) -> dict[str, int]:
    """Return {pipe: maximum number of bytes that a run may write to it}."""
    output = limits.output_bytes
    return {"stdout": output, "stderr": output, "results": limits.result_bytes + _REPORT_BYTES}


class BrokenReport(Exception):
    """Raised if the bytes from the launcher's pipe are not a valid report."""


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    status: RunStatus
    exit_code: int | None
    signal: int | None
    message: str
    seconds: NonNegativeFloat
    files: list[tuple[str, NonNegativeInt]]


def parse_report(data: bytes, result_bytes: int) -> SandboxResult | None:
    """Return the result in a launcher's report, or None if the report is incomplete.

    A report begins with the letter S. When the script has ended, the launcher adds a line of JSON (`_Head`) and the
    contents of the script's files. Raises `BrokenReport` for any other bytes, and for files that are together larger
    than `result_bytes`.
    """
    if data and not has_started(data):
        raise BrokenReport("it does not begin with S")
    if not has_ended(data):
        return None
    start = data.index(b"\n") + 1
    try:
        head = _Head.model_validate_json(data[1:start])
    except ValidationError as error:
        raise BrokenReport(f"its first line is invalid ({error.error_count()} errors)") from None
    files: dict[str, bytes] = {}
    position = start
    for name, size in head.files:
        if not is_plain_path(name) or name in files:
            raise BrokenReport("a file name is not a plain path, or occurs twice")
        files[name] = data[position : position + size]
        position += size
    if position - start > result_bytes:
        raise BrokenReport("the files are larger than allowed")
    if position < len(data):
        raise BrokenReport("there are bytes after the end")
    result = SandboxResult(head.status, head.exit_code, head.signal, head.message, files=files, seconds=head.seconds)
    return result if position == len(data) else None


def has_started(report: bytes) -> bool:
    """Return whether the launcher started the script."""
    return report[:1] == b"S"


def has_ended(report: bytes) -> bool:
    """Return whether a report says how the run ended. The launcher adds this when all processes are dead."""
    return b"\n" in report


def is_plain_path(name: str) -> bool:
    """Return whether a relative path stays inside the folder to which it is joined, so that it contains no `..`."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))
