"""Make the bubblewrap command, which gives a process private namespaces and a view of only a few files."""

import contextlib
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

# The first release of bubblewrap that can limit the size of a scratch folder.
OLDEST_BWRAP = (0, 7, 0)
# The first release of bubblewrap that can forbid further user namespaces. With older releases, only the seccomp filter
# forbids them.
DISABLES_USER_NAMESPACES = (0, 8, 0)
_NOBODY = "65534"
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
_ETC = {
    "/etc/passwd": f"student:x:{_NOBODY}:{_NOBODY}::/scratch:/bin/sh\n".encode(),
    "/etc/group": f"student:x:{_NOBODY}:\n".encode(),
}
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# System files that must be visible. The dynamic loader finds libraries through the first three. The rest of /etc is
# hidden, because it describes this machine. Libraries read the last one to choose their code for the processor.
_NEEDED = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/sys/devices/system/cpu")
_ROOT = Path(__file__).resolve().parent.parent.parent
# The size of the small folders into which libraries write. Results and data belong in the scratch folder.
SMALL_BYTES = 16 * 1024 * 1024
SMALL_FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108
# Files and folders in harness/ that students must not see. A course kit does not contain them, and the sandbox hides
# them. The names of folders end in "/".
HIDDEN_FROM_STUDENTS = (
    "experiments/",  # the healthy experiments
)

# A function that stores content in a file that bubblewrap can read, and returns the file descriptor.
Keep = Callable[[bytes], int]


@functools.cache
def bwrap_version() -> tuple[int, ...] | None:
    """Return the installed version of bubblewrap, or None if it is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else None


def bwrap_command(
    *, files: Mapping[str, bytes], visible: Sequence[Path], scratch_bytes: int, nested: bool, keep: Keep
) -> list[str]:
    """Return the bubblewrap command, to which the caller appends the program.

    files: {absolute path inside the sandbox: content}. nested: whether the program may create nested namespaces.
    Raises `ValueError` for a visible path that is not absolute.
    """
    words = [shutil.which("bwrap") or "bwrap", "--unshare-all", "--unshare-user"]
    words += ["--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox", "--cap-drop", "ALL"]
    words += ["--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--proc", "/proc"]
    if not nested:
        if (bwrap_version() or OLDEST_BWRAP) >= DISABLES_USER_NAMESPACES:
            words.append("--disable-userns")
        words += ["--remount-ro", "/proc"]
    words += _devices()
    for folder, size in (("/tmp", SMALL_BYTES), ("/scratch", scratch_bytes)):  # noqa: S108
        words += ["--size", str(size), "--tmpfs", folder]
    words += [*mounts(visible, hidden_paths()), "--dir", "/input"]
    for place, content in {**files, **_ETC}.items():
        words += ["--file", str(keep(content)), place]
    # Make the root folder read-only as the last step, because the earlier steps create folders and files in it, and
    # it has no size limit.
    return [*words, "--remount-ro", "/", "--chdir", "/scratch"]


def _devices() -> list[str]:
    # /dev/zero is left out, because a shared mapping of it is memory that no limit counts. Terminals are left out, too.
    words = ["--size", str(SMALL_BYTES), "--tmpfs", "/dev"]
    for device in _DEVICES:
        words += ["--dev-bind", device, device]
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        words += ["--symlink", f"/proc/self/fd/{number}", f"/dev/{name}"]
    words += ["--symlink", "/proc/self/fd", "/dev/fd", "--dir", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    return [*words, "--size", str(SMALL_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108


def base_python() -> Path:
    """Return the interpreter that the virtual environment is based on."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def plain_path(path: Path) -> Path:
    """Return an equivalent path without `..`, because bubblewrap cannot create folders in a path with `..`."""
    return path.resolve() if ".." in path.parts else path


def running_python() -> Path:
    """Return the path of this interpreter. Keep a link at its end, because the virtual environment depends on it."""
    running = Path(sys.executable)
    return plain_path(running.parent) / running.name


def hidden_paths() -> tuple[Path, ...]:
    """Return the files and folders that a sandboxed process must not see, even inside a visible folder."""
    names = ("exercises", "grader", "solutions", "submissions", "tests", "trainwreck_suite")
    paths = [*(_ROOT / name for name in names), *(_ROOT / "harness" / name for name in HIDDEN_FROM_STUDENTS)]
    # Hide the repository, because it may be inside a system folder such as /usr/src, or inside a folder that a caller
    # makes visible. After an installation from a wheel, do not hide PACKAGES, because this folder contains all
    # installed packages, which a replay needs.
    if not (_ROOT / "trainwreck_suite").is_dir():
        paths.append(_ROOT)
    with contextlib.suppress(RuntimeError):  # some users have no home folder
        paths.append(Path.home())
    return tuple(paths)


def mounts(visible: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Return the bubblewrap options that make the system and the visible paths visible, read-only.

    If one path is inside another path, the inner path decides. So if a visible path is inside a hidden folder, it
    remains visible, and the rest of the folder is empty. A hidden file cannot be opened. Raises `ValueError` for a
    visible path that is not absolute.
    """
    words: list[str] = []
    shown: dict[Path, Sequence[str]] = {}
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            shown[folder] = ("--ro-bind", str(folder))
    shown |= {Path(path): ("--ro-bind-try", path) for path in _NEEDED}
    prefix = Path(sys.base_prefix)
    for path in map(plain_path, (prefix, prefix.resolve(), base_python(), *visible)):
        if not path.is_absolute():
            raise ValueError(f"{path} is not absolute")
        shown[path] = ("--ro-bind", str(path))
    covers: dict[Path, Sequence[str]] = {}
    for path in hidden:
        if path not in shown and any(path.is_relative_to(parent) for parent in shown):
            if path.is_dir():
                covers[path] = ("--tmpfs",)
            elif path.exists():
                # A device that is bound with --ro-bind, not with --dev-bind, cannot be opened.
                covers[path] = ("--ro-bind", "/dev/null")
    for path, option in sorted((shown | covers).items(), key=lambda item: (len(item[0].parts), item[0])):
        words += [*option, str(path)]
    # These options come last, because bubblewrap must first create mount points for visible paths inside hidden
    # folders.
    for path, option in covers.items():
        words += ["--remount-ro", str(path)] if option == ("--tmpfs",) else []
    return words
