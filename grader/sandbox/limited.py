"""Starts a command under resource limits: `python limited.py '[["RLIMIT_CPU", 60, 61]]' command ...`."""

import contextlib
import json
import os
import resource
import sys
from pathlib import Path


def main(limits: str, command: list[str]) -> None:
    """Become the command, with no limit above those of this process."""
    for name, soft, hard in json.loads(limits):
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        given = (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most))
        resource.setrlimit(number, given)
    # When the machine's memory is full, the kernel is to take this before the grader (Linux).
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        # As a shell has it for a command that is not there.
        sys.exit(f"{command[0]} could not be started: {error}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
