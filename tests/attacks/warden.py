"""Runs one command and says what it left behind: `python -P warden.py seconds stdout stderr command ...`.

As a child subreaper it inherits every process that the command started and that outlived its parents, whatever
session or group it moved to; so a process that is left is found without looking at anybody else's.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# What ends by itself may take a moment to be gone.
PATIENCE_SECONDS = 3.0


def main(words: list[str]) -> None:
    """Print a JSON object: `status` (None: the limit passed and the command was killed), `left` (command lines)."""
    limit, stdout, stderr, *command = words
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "this kernel hands over no orphans")
    with Path(stdout).open("wb") as out, Path(stderr).open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
    status: int | None = None
    try:
        status = process.wait(float(limit))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := children()) and time.monotonic() < deadline:
        time.sleep(0.05)
    while found := children():
        for number in found:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.05)
    print(json.dumps({"status": status, "left": sorted(left.values())}))


def children() -> dict[int, str]:
    """Return the command lines of this process's children; those that have ended are taken leave of."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name in parentheses may hold anything.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            if parent == os.getpid():
                words = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(stat.parent.name)] = words.decode(errors="replace")[:300]
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
