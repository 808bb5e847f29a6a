"""What a sandboxed process may use, and how it ended.

Each ending is laid at somebody's door, so that no command can pass its own off as the grader's fault:

- OK: exit status 0, whether it left files or not. RE: any other exit status. SG: a signal killed it; the whole
  sandbox dying under it counts as that, since nothing of ours ends it but a limit.
- TO: no processor time or no wall-clock time left. ML: too much memory, or too many processes or threads.
  OL: too much output, a full scratch folder or too many files in it, a file or results too large.
- XX: our own fault: bubblewrap did not start, the command was not there, the launcher failed.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["OK", "RE", "SG", "TO", "OL", "ML", "XX"]

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """What one command and everything it starts may use together, where nothing else is said.

    `memory_bytes` is what was allocated, with its page tables and without the libraries; files in the scratch
    folder come on top, up to `scratch_bytes`. `file_bytes` is for each file, `output_bytes` for standard output and
    standard error together, `result_bytes` for the files that come out.
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
    """How a command ended, in a word and in a sentence, and what it left.

    `files` are the regular files below `out/` in its scratch folder, by path; only a command that ended by
    itself (OK, RE, SG) leaves any. `stdout` and `stderr` are cut at `Limits.output_bytes`. All of it is
    what a stranger wrote.
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

    Sums over all processes are watched besides; these are for what happens between two looks.
    """
    seconds = math.ceil(limits.cpu_seconds) + 1
    return [
        # At the soft limit comes SIGXCPU, which says what happened; at the hard one SIGKILL, which does not.
        ("RLIMIT_CPU", seconds, seconds + 1),
        # What is reserved and never used counts here, and torch reserves some.
        ("RLIMIT_DATA", limits.memory_bytes + 512 * MIB, limits.memory_bytes + 512 * MIB),
        ("RLIMIT_FSIZE", limits.file_bytes, limits.file_bytes),
        ("RLIMIT_NOFILE", 256, 256),
        ("RLIMIT_CORE", 0, 0),
    ]
