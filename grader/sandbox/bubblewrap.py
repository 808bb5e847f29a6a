"""The bubblewrap command: namespaces of its own for a process, and a small world around it."""

import functools
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from grader.sandbox.mounts import hidden_paths, mounts

# The first release that can limit the size of a scratch folder.
OLDEST = (0, 7, 0)
# The first that can forbid further user namespaces; before, the seccomp filter alone forbids them.
_DISABLES_USER_NAMESPACES = (0, 8, 0)
_NOBODY = "65534"
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
_ETC = {
    "/etc/passwd": f"student:x:{_NOBODY}:{_NOBODY}::/scratch:/bin/sh\n".encode(),
    "/etc/group": f"student:x:{_NOBODY}:\n".encode(),
}
# For what libraries insist on writing there; results and data belong into the scratch folder.
_SMALL_BYTES = 16 * 1024 * 1024
LAUNCHER = "/launcher.py"

# Keeps content where bubblewrap can read it, and returns its file descriptor.
Keep = Callable[[bytes], int]


@functools.cache
def version() -> tuple[int, ...] | None:
    """Return the version of bubblewrap here, or None where there is none."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else None


def arguments(
    *,
    launcher: bytes,
    inputs: Mapping[str, bytes],
    visible: Sequence[Path],
    scratch_bytes: int,
    seccomp: bytes,
    keep: Keep,
) -> list[str]:
    """Return the bubblewrap command up to the program that it is to start.

    Raises `ValueError` for an input that is no plain relative path, or a visible path that is not absolute.
    """
    words = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--unshare-user",
        "--uid",
        _NOBODY,
        "--gid",
        _NOBODY,
    ]
    if (version() or OLDEST) >= _DISABLES_USER_NAMESPACES:
        words.append("--disable-userns")
    words += [
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
    ]
    words += ["--seccomp", str(keep(seccomp)), "--clearenv"]
    words += ["--proc", "/proc", "--remount-ro", "/proc", *_devices()]
    for folder, size in (("/tmp", _SMALL_BYTES), ("/scratch", scratch_bytes)):  # noqa: S108
        words += ["--size", str(size), "--tmpfs", folder]
    words += [*mounts(visible, hidden_paths()), "--dir", "/input"]
    files = {LAUNCHER: launcher, **_ETC}
    for name, content in inputs.items():
        check_input_name(name)
        files[f"/input/{name}"] = content
    for place, content in files.items():
        words += ["--file", str(keep(content)), place]
    # Last: until here bubblewrap makes folders and files in the root, which has no limit of its own.
    return [*words, "--remount-ro", "/", "--chdir", "/scratch"]


def check_input_name(name: str) -> None:
    """Raise `ValueError` unless this is a path that stays inside the folder where it is put."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r} is not a plain path")


def _devices() -> list[str]:
    # No /dev/zero: mapped as shared, it is memory that no limit counts. No terminals.
    words = ["--size", str(_SMALL_BYTES), "--tmpfs", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind", device, device]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    words += ["--symlink", "/proc/self/fd", "/dev/fd", "--dir", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    return [*words, "--size", str(_SMALL_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
