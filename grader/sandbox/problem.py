"""Says whether the sandbox works on this machine and, where it does not, what to do about it."""

import platform
import shutil
import sys
from pathlib import Path

from grader.sandbox.bubblewrap import OLDEST, version
from grader.sandbox.mounts import launcher_python
from grader.sandbox.result import MIB, Limits
from grader.sandbox.run import run_in_sandbox
from grader.sandbox.syscalls import ARCHITECTURES

_PACKAGE_MANAGERS = {
    "apt-get": "sudo apt-get install bubblewrap",
    "dnf": "sudo dnf install bubblewrap",
    "zypper": "sudo zypper install bubblewrap",
    "pacman": "sudo pacman -S bubblewrap",
    "apk": "sudo apk add bubblewrap",
}
_LIMITS = Limits(cpu_seconds=10, wall_seconds=30, memory_bytes=256 * MIB, scratch_bytes=MIB)
_NAMESPACES = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")


def sandbox_problem() -> str | None:
    """Return None if a sandbox starts here, else one sentence that says why not and what to do."""
    if sys.platform != "linux":
        return f"The sandbox needs Linux and this is {platform.system()}: grade in a Linux machine, virtual or real."
    if platform.machine() not in ARCHITECTURES:
        return (
            f"The sandbox has no filter for {platform.machine()} processors: grade on one of"
            f" {', '.join(ARCHITECTURES)}."
        )
    installed = version()
    if installed is None:
        return f"The sandbox needs bubblewrap, which is not installed: {install_command()}"
    if installed < OLDEST:
        found, needed = (".".join(map(str, numbers)) for numbers in (installed, OLDEST))
        return f"The sandbox needs bubblewrap {needed} or later, and this is {found}: {install_command()}"
    command = [str(launcher_python()), "-I", "-S", "-c", "print('ready')"]
    result = run_in_sandbox(command, inputs={}, environment={}, limits=_LIMITS)
    if result.status == "OK" and result.stdout == b"ready\n":
        return None
    message = f"bubblewrap is installed, but a sandbox does not start here ({result.message}): "
    if _NAMESPACES.exists() and _NAMESPACES.read_text().strip() == "1":
        return message + "allow it with sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    return (
        message
        + "allow user namespaces (sudo sysctl user.max_user_namespaces=15000); in a container, as Docker,"
        " start it with --privileged"
    )


def install_command() -> str:
    """Return the command that installs bubblewrap here, by the package manager that is here."""
    for program, command in _PACKAGE_MANAGERS.items():
        if shutil.which(program):
            return command
    return "install the package bubblewrap with this system's package manager"
