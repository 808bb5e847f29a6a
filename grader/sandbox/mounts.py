"""Which folders of this machine a sandboxed process sees, and which it must not see inside those."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from grader.sandbox.kept_back import hidden_of_harness

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Libraries are found through the first three; the rest of /etc says things about this machine. Libraries choose
# their code by what they read of the processors.
_NEEDED = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/sys/devices/system/cpu")
_ROOT = Path(__file__).resolve().parent.parent.parent


def launcher_python() -> Path:
    """Return the interpreter that starts the launcher: the one below the virtual environment."""
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def hidden_paths() -> tuple[Path, ...]:
    """Return the files and folders that no sandboxed process may see, wherever they lie."""
    names = ("exercises", "grader", "solutions", "submissions", "tests")
    # The whole suite may lie inside a folder of the system, as /usr/src; and a caller may show it whole.
    paths = [_ROOT, *(_ROOT / name for name in names), *hidden_of_harness(_ROOT / "harness")]
    with contextlib.suppress(RuntimeError):  # not everybody has a home
        paths.append(Path.home())
    return tuple(paths)


def mounts(visible: Sequence[Path], hidden: Sequence[Path]) -> list[str]:
    """Return the bubblewrap options that show the system and the visible paths, read-only.

    Of a path and another below it the deeper one decides: a hidden folder inside a visible one is empty, but
    for what is visible inside it; a hidden file cannot be opened. Raises `ValueError` for a visible path that
    is not absolute.
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
    for path in (prefix, prefix.resolve(), launcher_python(), *visible):
        if not path.is_absolute():
            raise ValueError(f"{path} is not absolute")
        shown[path] = ("--ro-bind", str(path))
    covers: dict[Path, Sequence[str]] = {}
    for path in hidden:
        if path not in shown and any(path.is_relative_to(parent) for parent in shown):
            if path.is_dir():
                covers[path] = ("--tmpfs",)
            elif path.exists():
                # Bound without --dev-bind a device cannot be opened.
                covers[path] = ("--ro-bind", "/dev/null")
    for path, option in sorted((shown | covers).items(), key=lambda item: (len(item[0].parts), item[0])):
        words += [*option, str(path)]
    # Last: what is visible inside a hidden folder needs a place made there.
    for path, option in covers.items():
        words += ["--remount-ro", str(path)] if option == ("--tmpfs",) else []
    return words
