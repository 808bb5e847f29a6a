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
SMALL_BYTES = 16 * 1024 * 1024
SMALL_FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108
LAUNCHER = "/launcher/inside.py"

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
    files: Mapping[str, bytes],
    visible: Sequence[Path],
    scratch_bytes: int,
    seccomp: bytes | None,
    keep: Keep,
) -> list[str]:
    """Return the bubblewrap command up to the program that it is to start; `files` lie at absolute paths there.

    Without a filter, for code of ours alone, what it starts may take namespaces of its own (`warm_inside.py`).
    Raises `ValueError` for a visible path that is not absolute.
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
    if seccomp is not None and (version() or OLDEST) >= _DISABLES_USER_NAMESPACES:
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
    words += ["--clearenv", "--proc", "/proc"]
    if seccomp is not None:
        words += ["--seccomp", str(keep(seccomp)), "--remount-ro", "/proc"]
    words += _devices()
    for folder, size in (("/tmp", SMALL_BYTES), ("/scratch", scratch_bytes)):  # noqa: S108
        words += ["--size", str(size), "--tmpfs", folder]
    words += [*mounts(visible, hidden_paths()), "--dir", "/input"]
    for place, content in {**files, **_ETC}.items():
        words += ["--file", str(keep(content)), place]
    # Last: until here bubblewrap makes folders and files in the root, which has no limit of its own.
    return [*words, "--remount-ro", "/", "--chdir", "/scratch"]


def input_files(inputs: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return where the inputs lie inside. Raises `ValueError` for one that is no plain relative path."""
    for name in inputs:
        check_input_name(name)
    return {f"/input/{name}": content for name, content in inputs.items()}


def check_input_name(name: str) -> None:
    """Raise `ValueError` unless this is a path that stays inside the folder where it is put."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r} is not a plain path")


def _devices() -> list[str]:
    # No /dev/zero: mapped as shared, it is memory that no limit counts. No terminals.
    words = ["--size", str(SMALL_BYTES), "--tmpfs", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind", device, device]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    words += ["--symlink", "/proc/self/fd", "/dev/fd", "--dir", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    return [*words, "--size", str(SMALL_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
