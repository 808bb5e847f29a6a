"""A sandboxed command, its limits and its outcome, and the format in which the launcher reports it.

Every status says whose fault it is, so that a command cannot blame the grader:

- OK: exit status 0. RE: another exit status. SG: a signal killed the command, or its whole sandbox.
- TO: no processor time or wall-clock time left. ML: too much memory, or too many processes or threads.
  OL: too much output, a full scratch folder, too many files, or results that are too large.
- XX: the grader's fault: bubblewrap or the launcher failed, or the command does not exist.
"""

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

Status = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]

MIB = 1024 * 1024
_TEXT_BYTES = 64 * 1024  # of a sentence or a file name in a report
# What a report holds besides the contents of files.
_REPORT_BYTES = 8 * MIB
_WATCHED = ("cpu_seconds", "memory_bytes", "processes", "file_bytes", "scratch_files", "result_bytes")


@dataclass(frozen=True)
class Limits:
    """What one command and all processes that it starts may use together, unless a field says otherwise.

    `memory_bytes` counts allocated memory and page tables, not libraries. Files in the scratch folder do not count
    as memory; they have `scratch_bytes`. `file_bytes` limits each file, `output_bytes` each of standard output and
    standard error, `result_bytes` the files that come back.
    """

    cpu_seconds: float = 60.0
    wall_seconds: float = 120.0
    memory_bytes: int = 2048 * MIB
    processes: int = 64
    file_bytes: int = 128 * MIB
    scratch_bytes: int = 256 * MIB
    scratch_files: int = 1000
    output_bytes: int = 1 * MIB
    result_bytes: int = 64 * MIB


@dataclass(frozen=True)
class Command:
    """A command to run in the sandbox.

    It works in a scratch folder, finds the `inputs` by their names in `../input/`, and returns the files that it writes
    below `out/`. Of this machine it sees only libraries and the `visible` paths, read-only; its environment is
    `environment` alone. Raises `ValueError` for the name of an input that is no plain relative path.
    """

    words: Sequence[str]
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = Limits()
    visible: Sequence[Path] = ()

    def __post_init__(self) -> None:
        for name in self.inputs:
            if not is_plain_path(name):
                raise ValueError(f"{name!r} is not a plain path")


@dataclass(frozen=True)
class SandboxResult:
    """How a command ended, as a status and as a sentence, and what it left. All of it is untrusted.

    `files` maps paths below `out/` in the scratch folder to contents; only a command that ended by itself (OK, RE,
    SG) leaves any. `stdout` and `stderr` are cut at `Limits.output_bytes`.
    """

    status: Status
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    stdout: bytes = b""
    stderr: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


def rlimits(limits: Limits) -> list[tuple[str, int, int]]:
    """Return the soft and hard limits of each process, by their names in `resource`.

    The launcher watches the sums over all processes; these limits act between two of its looks.
    """
    seconds = math.ceil(limits.cpu_seconds) + 1
    # torch reserves memory that it never uses, and RLIMIT_DATA counts it.
    data = limits.memory_bytes + 512 * MIB
    return [
        # The soft limit sends SIGXCPU, which says what happened; the hard limit sends SIGKILL, which does not. Between
        # them the launcher has time to look, also on a busy machine.
        ("RLIMIT_CPU", seconds, seconds + 30),
        ("RLIMIT_DATA", data, data),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", 256, 256),
        ("RLIMIT_CORE", 0, 0),
    ]


def launcher_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits in the form that a launcher inside the sandbox reads (`launcher.py`)."""
    processes = []
    # Kernels before 5.14 count the user's processes outside the sandbox too.
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if release is not None and tuple(map(int, release.groups())) >= (5, 14):
        # Twice the number, so that the launcher reports the excess. The kernel does not count root's processes.
        processes = [("RLIMIT_NPROC", 2 * limits.processes, 2 * limits.processes)]
    return {"rlimits": rlimits(limits) + processes, **{name: getattr(limits, name) for name in _WATCHED}}


def pipe_rooms(limits: Limits) -> dict[str, int]:
    """Return how many bytes each pipe of a run may bring."""
    output = limits.output_bytes
    return {"stdout": output, "stderr": output, "results": limits.result_bytes + _REPORT_BYTES}


class BrokenReport(Exception):
    """The bytes are no report of the launcher."""


def has_started(report: bytes) -> bool:
    """Return whether the launcher started the command."""
    return report[:1] == b"S"


def has_ended(size: int) -> bool:
    """Return whether a report of this size says that the command has ended and only the launcher is left."""
    return size > 1


def parse_report(data: bytes, result_bytes: int) -> SandboxResult | None:
    """Parse a launcher's report; return None for an incomplete one.

    It begins with S. When the command has ended, there follow `status exit-status signal message`, then `size name`
    and the content of each file, then an empty name; a zero byte ends each text. Raises `BrokenReport` for anything
    else, and for more than `result_bytes` of content.
    """
    if data and not has_started(data):
        raise BrokenReport("it does not begin with S")
    ending, position = _text(data, 1)
    if ending is None:
        return None
    result = _read_ending(ending)
    while True:
        head, position = _text(data, position)
        if not head:
            break
        size, _, name = head.partition(" ")
        if not (size.isdecimal() and size.isascii()) or len(size) > 12:
            raise BrokenReport("a file without a size")
        if not is_plain_path(name) or name in result.files:
            raise BrokenReport("a file name that is no plain path, or comes twice")
        result_bytes -= int(size)
        if result_bytes < 0:
            raise BrokenReport("the files are larger than is allowed")
        result.files[name] = data[position : position + int(size)]
        position += int(size)
    if position < len(data):
        raise BrokenReport("bytes after the end")
    return None if head is None else result


def _text(data: bytes, position: int) -> tuple[str | None, int]:
    """Return the text at a position and the position after it; None if its end is not there yet."""
    end = data.find(b"\0", position, position + _TEXT_BYTES)
    if end < 0:
        if len(data) - position >= _TEXT_BYTES:
            raise BrokenReport("a text that is too long")
        return None, len(data)
    try:
        return data[position:end].decode("utf-8"), end + 1
    except UnicodeDecodeError:
        raise BrokenReport("a text that is not UTF-8") from None


def _read_ending(text: str) -> SandboxResult:
    words = text.split(" ", 3)
    if len(words) != 4 or words[0] not in get_args(Status):
        raise BrokenReport("an ending without a status")
    try:
        code, number = (None if word == "-" else int(word) for word in words[1:3])
    except ValueError:
        raise BrokenReport("an ending without numbers") from None
    return SandboxResult(cast(Status, words[0]), code, number, words[3])


def is_plain_path(name: str) -> bool:
    """Return whether a relative path stays inside the folder that it is joined to."""
    return not any(part in ("", ".", "..") for part in name.split("/"))
