"""A script for the sandbox, its limits and its result, and the format of the launcher's report.

Every status says whose fault it is, so that a script cannot blame the grader:

- OK: exit status 0. RE: another exit status. SG: a signal killed the script, or its whole sandbox.
- TO: it used up its time. ML: too much memory, or too many processes or threads. OL: too much output, a full scratch
  folder, too many files, or results that are too large.
- XX: the grader or the machine failed. bubblewrap or the launcher failed, the script does not exist, or the run did not
  end although it used little time.
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
# The bytes of a report without the contents of files.
_REPORT_BYTES = 8 * MIB
# Older kernels also count the user's processes outside the sandbox.
COUNTS_PROCESSES = (5, 14)
_WATCHED = ("seconds", "memory_bytes", "processes", "file_bytes", "scratch_files", "result_bytes")


@dataclass(frozen=True)
class Limits:
    """The limits for a script and all processes that it starts, together unless a field says otherwise.

    seconds: the processor time of all processes, plus the time in which all of them sleep. It does not depend on how
        busy the machine is.
    wall_seconds: clock time. If a run has not ended by then, it is the machine's fault.
    memory_bytes: allocated memory and page tables, without libraries and without files in the scratch folder.
    scratch_bytes, scratch_files: for the scratch folder.
    file_bytes: for each file. output_bytes: for each of standard output and standard error. result_bytes: for all
        files that come back.
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
    """The environment of scripts: Python with its options, environment variables, and read-only visible paths.

    preload: a script with imports, which runs once for any number of scripts. Scripts can see only the system's
    libraries and the visible paths of this machine. They have only the variables in `environment`.
    """

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    visible: Sequence[Path] = ()
    preload: Path | None = None


@dataclass(frozen=True)
class SandboxCommand:
    """A script to run in the sandbox.

    It runs in a scratch folder, finds the `inputs` by their names in `../input/`, and returns the files that it writes
    to `out/`. Raises `ValueError` if the name of an input is not a plain relative path.
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
    """How a script ended, as a status and as a sentence, and its output. All of it is untrusted.

    seconds: the time that the script used of `Limits.seconds`. files: contents by path in `out/`; empty unless the
    script ended by itself (OK, RE, SG). stdout, stderr: cut at `Limits.output_bytes`.
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
    """Return the soft and hard limits of each process, by their names in `resource`.

    The launcher checks the sums over all processes. These limits work between two of its checks. They also limit
    kernel memory for open files, pipes and queued signals.
    """
    seconds = math.ceil(limits.seconds) + 1
    # torch reserves memory that it never uses, and RLIMIT_DATA counts it.
    data = limits.memory_bytes + 512 * MIB
    return [
        # The soft limit sends SIGXCPU, which shows the reason. The hard limit sends SIGKILL, which hides the reason.
        # The time between the two limits is enough for the launcher to check, even on a busy machine.
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
    """Return the first two numbers of the kernel's release."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return tuple(map(int, found.groups())) if found else (0, 0)


def launcher_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits in the format for the launcher inside the sandbox (`worker.py`)."""
    processes = []
    if kernel_release() >= COUNTS_PROCESSES:
        # Allow twice the number of processes, so that the launcher can report the excess. The kernel does not count the
        # processes of root.
        processes = [("RLIMIT_NPROC", 2 * limits.processes, 2 * limits.processes)]
    return {"rlimits": rlimits(limits) + processes, **{name: getattr(limits, name) for name in _WATCHED}}


def pipe_rooms(limits: Limits) -> dict[str, int]:
    """Return the maximum number of bytes from each pipe of a run."""
    output = limits.output_bytes
    return {"stdout": output, "stderr": output, "results": limits.result_bytes + _REPORT_BYTES}


class BrokenReport(Exception):
    """Raised if bytes are not a report of the launcher."""


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

    A report begins with S. After the script has ended, a line of JSON (`_Head`) and the contents of its files follow.
    Raises `BrokenReport` for any other bytes, and for more than `result_bytes` of content.
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
    """Return whether the report has the ending of the run. The launcher writes it when all processes are dead."""
    return b"\n" in report


def is_plain_path(name: str) -> bool:
    """Return whether a relative path stays inside the folder that it is joined to."""
    return "\0" not in name and not any(part in ("", ".", "..") for part in name.split("/"))
