"""Keep a child process from changing the user's files: what it opens for writing goes to a temporary folder."""

import builtins
import io
import os
import pathlib
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_WRITES = frozenset("wax+")
_SILENT = {"WANDB_MODE": "disabled", "MLFLOW_TRACKING_URI": "", "COMET_MODE": "disabled", "HF_HUB_OFFLINE": "1"}


# Libraries build their caches with C++ code, too, so a half redirected cache would break the script.
_CACHES = ("HF_HOME", "HF_DATASETS_CACHE", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")


def redirect_writes(box: Path) -> None:
    """Redirect the writes of this process to the folder `box` from now on. Who made the folder removes it.

    `open`, `os.open`, `torch.save`, safetensors and new folders are redirected: a file keeps its name, and gets a
    folder of its own for each original folder. Reading a file that was written here reads the new one. Renaming gives a
    copy the new name. Only what was written here is removed. The caches of libraries are not redirected. Trackers that
    send data are switched off by their environment variables. Writes of other C++ code are not seen.
    """
    import torch

    guard = _Guard(box)
    own = {
        name: getattr(guard, name)
        for name in ("mkdir", "remove", "unlink", "rename", "replace", "rmdir", "link", "symlink")
    }
    builtins.open = io.open = guard.open
    for name, function in own.items():
        setattr(os, name, function)
    if sys.version_info < (3, 11):  # there, paths have kept the functions of `os` in a class
        for name, function in {**own, "open": guard.open}.items():
            setattr(pathlib._NormalAccessor, name, staticmethod(function))
    os.open, torch.save = guard.os_open, guard.writer(torch.save)
    shutil.rmtree = guard.rmtree  # type: ignore[assignment]
    if find_spec("safetensors") is not None:
        import safetensors.torch

        safetensors.torch.serialize_file = guard.writer(safetensors.torch.serialize_file)
    os.environ.update(_SILENT)


class _Guard:
    """What replaces the functions of the same names in `os`, and the paths that are redirected."""

    def __init__(self, box: Path) -> None:
        self._box = str(box)
        self._temporary = tempfile.gettempdir()  # it tries to write, so ask before writes are redirected
        self._moved: dict[str, str] = {}
        self._made: set[str] = set()  # folders
        self._open, self._os_open = builtins.open, os.open
        self._mkdir, self._rmdir, self._rmtree = os.mkdir, os.rmdir, shutil.rmtree
        self._remove, self._replace = os.remove, os.replace
        self._link, self._symlink = os.link, os.symlink
        caches = [Path("~/.cache").expanduser(), *(os.environ[name] for name in _CACHES if os.environ.get(name))]
        self._free = tuple(f"{_whole(one)}{os.sep}" for one in caches)

    def _is_free(self, whole: str) -> bool:
        """Return whether this process may write to a path as usual: in its box and in the caches of libraries."""
        return f"{whole}{os.sep}".startswith((self._box, *self._free))

    def _place(self, path: Any) -> str:
        """Return the redirected path of a file."""
        whole = _whole(path)
        if self._is_free(whole) or whole.startswith((os.devnull, "/dev/", "/proc/")):
            return whole
        if whole not in self._moved:
            folder = Path(self._box, format(len(self._moved), "04"))
            self._mkdir(folder)
            self._moved[whole] = str(folder / (Path(whole).name or "file"))
        return self._moved[whole]

    def _copy(self, source: str, target: str) -> None:
        with self._open(source, "rb") as old, self._open(target, "wb") as new:
            shutil.copyfileobj(old, new)

    def writer(self, save: Any) -> Any:
        """Return a function like `save`, whose second argument is a path, that writes to the redirected path."""

        def own_save(thing: Any, file: Any, *args: Any, **kwargs: Any) -> Any:
            return save(thing, self._place(file) if _is_path(file) else file, *args, **kwargs)

        return own_save

    def open(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if _is_path(file):
            whole = _whole(file)
            if not _WRITES & set(mode):
                file = self._moved.get(whole, file)
            else:
                file = self._place(file)
                # Who appends sees the content so far.
                if ("a" in mode or "+" in mode) and not Path(file).exists() and Path(whole).is_file():
                    self._copy(whole, file)
        return self._open(file, mode, *args, **kwargs)

    def os_open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if _is_path(path) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = self._place(path)
        return self._os_open(path, flags, *args, **kwargs)

    def mkdir(self, path: Any, *args: Any, **kwargs: Any) -> None:
        whole = _whole(path)
        if self._is_free(whole) or whole.startswith(self._temporary):
            self._mkdir(path, *args, **kwargs)
            self._made.add(whole)

    def rmdir(self, path: Any, *, dir_fd: Any = None) -> None:
        if dir_fd is not None or _whole(path) in self._made or self._is_free(_whole(path)):
            self._rmdir(path, dir_fd=dir_fd)

    def rmtree(self, path: Any, *args: Any, **kwargs: Any) -> None:
        if _whole(path) in self._made or self._is_free(_whole(path)):
            self._rmtree(path, *args, **kwargs)

    def remove(self, path: Any, *, dir_fd: Any = None) -> None:
        whole = _whole(path)
        if whole in self._moved:
            self._remove(self._moved[whole])
        elif dir_fd is not None or self._is_free(whole) or not os.path.lexists(whole):
            self._remove(path, dir_fd=dir_fd)  # in a folder that `rmtree` removes; or raise the usual error

    unlink = remove

    def replace(self, source: Any, target: Any, **kwargs: Any) -> None:
        file = self._moved.get(_whole(source), _whole(source))
        if self._is_free(file) and self._is_free(_whole(target)):
            self._replace(source, target, **kwargs)
        elif Path(file).is_file():
            self._copy(file, self._place(target))
        elif not os.path.lexists(file):
            self._replace(source, target, **kwargs)  # raise the usual error

    rename = replace

    def link(self, source: Any, target: Any, **kwargs: Any) -> None:
        """Make a link only in a cache."""
        if self._is_free(_whole(target)):
            self._link(source, target, **kwargs)

    def symlink(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        """Make a link only in a cache."""
        if self._is_free(_whole(target)):
            self._symlink(source, target, *args, **kwargs)


def _is_path(file: Any) -> bool:
    return isinstance(file, str | bytes | os.PathLike)


def _whole(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))
