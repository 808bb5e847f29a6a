"""Reads what the launcher inside the sandbox sends: frames of one letter, a length and so many bytes."""

from dataclasses import dataclass, field
from typing import cast, get_args

from grader.sandbox.result import Status

_HEADER = 9  # a letter, and the length in 8 bytes
_NAME_BYTES = 4096  # the longest path that Linux takes
_TEXT_BYTES = 64 * 1024


class BrokenFrames(Exception):
    """What came is not what the launcher sends."""


@dataclass
class Report:
    """What the launcher said: whether it started the command, how that ended, and the files."""

    started: bool = False
    finished: bool = False
    status: Status = "XX"
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    files: dict[str, bytes] = field(default_factory=dict)


def has_ended(size: int) -> bool:
    """Return whether so many bytes hold more than S: the command has ended, and only our launcher is left."""
    return size > _HEADER


def parse_frames(data: bytes, result_bytes: int) -> Report:
    """Return the launcher's report; one that breaks off has `finished` False.

    In order: S (the command starts), E (its end: status, exit status, signal and message, separated by
    spaces), any number of N (a name) with D (its content), Z. Raises `BrokenFrames` for anything else, and for
    more than `result_bytes` of content.
    """
    report = Report()
    position, room, expected, name = 0, result_bytes, b"SE", ""
    while expected:
        header = data[position : position + _HEADER]
        letter, length = header[:1], int.from_bytes(header[1:], "big")
        if header and letter not in expected:
            raise BrokenFrames(f"frame {letter!r} at byte {position}")
        limit = {b"S": 0, b"E": _TEXT_BYTES, b"N": _NAME_BYTES, b"D": room, b"Z": 0}.get(letter, 0)
        if len(header) == _HEADER and length > limit:
            raise BrokenFrames(f"frame {letter!r} of {length} bytes, where {limit} are allowed")
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
        raise BrokenFrames("a name that is not UTF-8") from None
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name or name in report.files:
        raise BrokenFrames("a name that is no plain path, or comes twice")
    return name
