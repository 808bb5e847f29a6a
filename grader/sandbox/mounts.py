"""Which folders of this machine a sandboxed process sees, and which it must not see inside those."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Libraries are found through the first three; the rest of /etc says things about this machine. Libraries choose
# their code by what they read of the processors.
_NEEDED = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/sys/devices/system/cpu")
_ROOT = Path(__file__).resolve().parent.parent.parent


def launcher_python() -> Path:
    """Return the interpreter that starts the launcher: the one below the virtual environment."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def hidden_folders() -> tuple[Path, ...]:
    """Return the folders that no sandboxed process may see, wherever they lie."""
    folders = [_ROOT / name for name in ("grader", "solutions", "submissions", "tests")]
    with contextlib.suppress(RuntimeError):  # not everybody has a home
        folders.append(Path.home())
    return tuple(folders)


def mounts(visible: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Return the bubblewrap options that show the system and the visible paths, read-only.

    Of a path and another below it the deeper one decides: a hidden folder inside a visible one is empty, but
    for what is visible inside it. Raises `ValueError` for a visible path that is not absolute.
    """
    words: list[str] = []
    shown: dict[Path, str] = {}
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            shown[folder] = "--ro-bind"
    shown |= dict.fromkeys(map(Path, _NEEDED), "--ro-bind-try")
    prefix = Path(sys.base_prefix)
    for path in (prefix, prefix.resolve(), launcher_python(), *visible):
        if not path.is_absolute():
            raise ValueError(f"{path} is not absolute")
        shown[path] = "--ro-bind"
    for path in hidden:
        if path.is_dir() and path not in shown and any(path.is_relative_to(parent) for parent in shown):
            shown[path] = "--tmpfs"
    for path in sorted(shown, key=lambda path: (len(path.parts), path)):
        words += [shown[path], str(path)]
        words += ["--remount-ro", str(path)] if shown[path] == "--tmpfs" else [str(path)]
    return words
