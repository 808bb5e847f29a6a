"""Starts a command under resource limits: `python limited.py '[["RLIMIT_CPU", 60, 61]]' command ...`."""

import json
import os
import resource
import sys


def main(limits: str, command: list[str]) -> None:
    """Become the command, with no limit above those of this process."""
    for name, soft, hard in json.loads(limits):
        number = getattr(resource, name)
        most = resource.getrlimit(number)[1]
        given = (soft, hard) if most == resource.RLIM_INFINITY else (min(soft, most), min(hard, most))
        resource.setrlimit(number, given)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        # As a shell has it for a command that is not there.
        sys.exit(f"{command[0]} could not be started: {error}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
