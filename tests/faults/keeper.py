"""Runs a command and ends when nothing that it started is left: `python keeper.py command ...`.

Whatever loses its parent below this process becomes its child (Linux: PR_SET_CHILD_SUBREAPER), so that nothing gets
away. It ends with the command's status, 128 and more for a signal. Only the standard library, so that it starts
quickly.
"""

import ctypes
import os
import sys

_PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Run the command; return its exit status once all of its descendants have ended."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
    child = os.posix_spawnp(command[0], command, os.environ)
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            return code if code >= 0 else 128 - code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
