"""Limits and outcomes of sandboxed runs, and the format in which the launcher reports them.

Every status says whose fault it is, so that a command cannot blame the grader:

- OK: exit status 0. RE: another exit status. SG: a signal killed the command, or its whole sandbox.
- TO: no processor time or wall-clock time left. ML: too much memory, or too many processes or threads.
  OL: too much output, a full scratch folder, too many files, or results that are too large.
- XX: the grader's fault: bubblewrap or the launcher failed, or the command does not exist.
"""

import math
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

Status = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]

MIB = 1024 * 1024
_HEADER = 9  # a letter, and the length in 8 bytes
_NAME_BYTES = 4096  # the longest path that Linux accepts
_TEXT_BYTES = 64 * 1024
# What a report holds besides the contents of files: headers, names, one sentence.
_FRAME_BYTES = 8 * MIB
_WATCHED = ("cpu_seconds", "memory_bytes", "processes", "file_bytes", "scratch_files", "result_bytes")


@dataclass(frozen=True)
class Limits:
    """What one command and all processes that it starts may use together, unless a field says otherwise.

    `memory_bytes` counts allocated memory and page tables, not libraries. Files in the scratch folder do not count
    as memory; they have `scratch_bytes`. `file_bytes` limits each file, `output_bytes` standard output and standard
    error together, `result_bytes` the files that come back.
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
        # The soft limit sends SIGXCPU, which says what happened; the hard limit sends SIGKILL, which does not.
        ("RLIMIT_CPU", seconds, seconds + 1),
        ("RLIMIT_DATA", data, data),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", 256, 256),
        ("RLIMIT_CORE", 0, 0),
    ]


def launcher_limits(limits: Limits) -> dict[str, Any]:
    """Return the limits in the form that a launcher inside the sandbox reads (`inside.py`)."""
    processes = []
    # Kernels before 5.14 count the user's processes outside the sandbox too.
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    if release is not None and tuple(map(int, release.groups())) >= (5, 14):
        # Twice the number, so that the launcher reports the excess. The kernel does not count root's processes.
        processes = [("RLIMIT_NPROC", 2 * limits.processes, 2 * limits.processes)]
    return {"rlimits": rlimits(limits) + processes, **{name: getattr(limits, name) for name in _WATCHED}}


def pipe_rooms(limits: Limits) -> dict[str, tuple[str, int]]:
    """Return how many bytes each pipe of a run may bring, in the form that `read_pipes` takes."""
    output = ("output", limits.output_bytes)
    return {"stdout": output, "stderr": output, "results": ("results", limits.result_bytes + _FRAME_BYTES)}


class BrokenFrames(Exception):
    """The bytes are no report of the launcher."""


@dataclass
class Report:
    """The launcher's report: whether it started the command, how the command ended, and the files."""

    started: bool = False
    finished: bool = False
    status: Status = "XX"
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def has_ended(size: int) -> bool:
    """Return whether a report of this size says that the command has ended and only the launcher is left."""
    return size > _HEADER


def parse_frames(data: bytes, result_bytes: int) -> Report:
    """Parse a launcher's report; an incomplete one has `finished` False.

    A frame is a letter, a length and a payload. In order: S (the command starts), E (its end: status, exit status,
    signal and message, separated by spaces), any number of N (a file name) with D (its content), Z. Raises
    `BrokenFrames` for anything else, and for more than `result_bytes` of content.
    """
    report = Report()
    position, room, expected, name = 0, result_bytes, b"SE", ""
    while expected:
        header = data[position : position + _HEADER]
        letter, length = header[:1], int.from_bytes(header[1:], "big")
        if header and letter not in expected:
            raise BrokenFrames(f"unexpected frame {letter!r} at byte {position}")
        limit = {b"E": _TEXT_BYTES, b"N": _NAME_BYTES, b"D": room}.get(letter, 0)
        if len(header) == _HEADER and length > limit:
            raise BrokenFrames(f"frame {letter!r} has {length} bytes and may have {limit}")
        payload = data[position + _HEADER : position + _HEADER + length]
        if len(header) < _HEADER or len(payload) < length:
            return report
        position += _HEADER + length
        if letter == b"S":
            report.started, expected = True, b"E"
        elif letter == b"E":
            _read_ending(payload, report)
            expected = b"NZ"
        elif letter == b"N":
            name, expected = _read_name(payload, report), b"D"
        elif letter == b"D":
            report.files[name] = payload
            room, expected = room - length, b"NZ"
        else:
            report.finished, expected = True, b""
    if position != len(data):
        raise BrokenFrames("bytes after the last frame")
    return report


def _read_ending(payload: bytes, report: Report) -> None:
    words = payload.decode("utf-8", "replace").split(" ", 3)
    if len(words) != 4 or words[0] not in get_args(Status):
        raise BrokenFrames("an ending without a status")
    report.status = cast(Status, words[0])
    report.message = words[3]
    try:
        report.exit_code = None if words[1] == "-" else int(words[1])
        report.signal = None if words[2] == "-" else int(words[2])
    except ValueError:
        raise BrokenFrames("an ending without numbers") from None


def _read_name(payload: bytes, report: Report) -> str:
    try:
        name = payload.decode("utf-8")
    except UnicodeDecodeError:
        raise BrokenFrames("a file name that is not UTF-8") from None
    if not is_plain_path(name) or "\0" in name or name in report.files:
        raise BrokenFrames("a file name that is no plain path, or comes twice")
    return name


def is_plain_path(name: str) -> bool:
    """Return whether a relative path stays inside the folder that it is joined to."""
    return not any(part in ("", ".", "..") for part in name.split("/"))


def check_input_names(names: Iterable[str]) -> None:
    """Raise `ValueError` if one of the names is no plain relative path."""
    for name in names:
        if not is_plain_path(name):
            raise ValueError(f"{name!r} is not a plain path")
