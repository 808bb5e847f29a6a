"""Keep a child process from changing the user's files: what it opens for writing goes to a temporary folder."""

import builtins
import errno
import gc
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# The functions of `os` that are replaced, besides `open`.
_REPLACED = (
    "mkdir", "remove", "unlink", "rename", "replace", "rmdir", "link", "symlink", "stat", "lstat", "access", "listdir",
    "scandir",
)  # fmt: skip
_WRITES = frozenset("wax+")
_SILENT = {"WANDB_MODE": "disabled", "MLFLOW_TRACKING_URI": "", "COMET_MODE": "disabled", "HF_HUB_OFFLINE": "1"}


# Libraries build their caches with C++ code, too, so a half redirected cache would break the script.
_CACHES = ("HF_HOME", "HF_DATASETS_CACHE", "HF_HUB_CACHE", "TORCH_HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR")


def redirect_writes(box: Path) -> None:
    """Redirect the writes of this process to the folder `box` from now on. Who made the folder removes it.

    `open`, `os.open`, `torch.save`, safetensors and new folders are redirected: the folder `files` of the box has the
    same folders as the file system, as far as the script writes there. What lies there hides the file of the same path
    from later reads, lists and questions whether it exists. What the script removes stays where it is, and the script
    does not see it any more. The caches of libraries are not redirected. Trackers that send data are switched off by
    their environment variables. Writes of other C++ code are not seen.
    """
    import torch

    guard = _Guard(box)
    own = {name: getattr(guard, name) for name in _REPLACED}
    _replace_everywhere(builtins.open, guard.open, guard)
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


def _replace_everywhere(old: Any, new: Any, guard: "_Guard") -> None:
    """Replace a function in all modules and tables that hold it: tarfile and numpy keep `open` under other names."""
    for holder in gc.get_referrers(old):
        if isinstance(holder, dict) and holder is not vars(guard):
            for key in [key for key, value in holder.items() if value is old]:
                holder[key] = new


class _Guard:
    """What replaces the functions of the same names in `os`."""

    def __init__(self, box: Path) -> None:
        self._box = str(box)
        self._files = Path(box, "files")
        self._temporary = tempfile.gettempdir()  # it tries to write, so ask before writes are redirected
        self._made: set[str] = set()  # folders in the place for temporary files
        self._gone: set[str] = set()  # what the script has removed, and the user keeps
        self._open, self._os_open = builtins.open, os.open
        self._old = {name: getattr(os, name) for name in _REPLACED}
        self._rmtree = shutil.rmtree
        caches = [Path("~/.cache").expanduser(), *(os.environ[name] for name in _CACHES if os.environ.get(name))]
        self._free = tuple(f"{_whole(one)}{os.sep}" for one in caches)

    def _is_free(self, whole: str) -> bool:
        """Return whether this process may write to a path as usual: in its box and in the caches of libraries."""
        return f"{whole}{os.sep}".startswith((self._box, *self._free))

    def _mirror(self, path: Any) -> str:
        """Return the path in the box that stands for a path."""
        drive, rest = os.path.splitdrive(_whole(path))
        return str(self._files.joinpath(drive.strip(":/\\") or "_", rest.lstrip(os.sep)))

    def _exists(self, path: str) -> bool:
        try:
            self._old["lstat"](path)
        except (OSError, ValueError):
            return False
        return True

    def _is_gone(self, whole: str) -> bool:
        """Return whether the script has removed the user's file, or a folder that contains it."""
        return bool(self._gone) and any(str(one) in self._gone for one in (whole, *Path(whole).parents))

    def _is_there(self, whole: str) -> bool:
        """Return whether the script sees the user's own file of this path."""
        return self._exists(whole) and not self._is_gone(whole)

    def _latest(self, path: Any) -> Any:
        """Return the path in the box if it was written or removed here, and otherwise the path itself."""
        if not _is_path(path) or self._is_free(_whole(path)):
            return path
        mirror = self._mirror(path)
        if not self._exists(mirror):
            return mirror if self._is_gone(_whole(path)) else path
        is_folder = Path(mirror).is_dir() and self._is_there(_whole(path))
        return path if is_folder else mirror

    def _place(self, path: Any) -> str:
        """Return the redirected path of a file to write."""
        whole = _whole(path)
        if self._is_free(whole) or whole.startswith((os.devnull, "/dev/", "/proc/")):
            return whole
        mirror = self._mirror(path)
        self._make_folders(str(Path(mirror).parent))
        return mirror

    def _make_folders(self, folder: str) -> None:
        if not self._exists(folder):
            self._make_folders(str(Path(folder).parent))
            self._old["mkdir"](folder)

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
                file = self._latest(file)
            else:
                file = self._place(file)
                # Who appends sees the content so far.
                if ("a" in mode or "+" in mode) and not self._exists(file) and self._is_there(whole):
                    self._copy(whole, file)
        return self._open(file, mode, *args, **kwargs)

    def os_open(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if _is_path(path) and kwargs.get("dir_fd") is None:
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            path = self._place(path) if writes else self._latest(path)
        return self._os_open(path, flags, *args, **kwargs)

    def stat(self, path: Any, **kwargs: Any) -> os.stat_result:
        result: os.stat_result = self._old["stat"](self._found(path, kwargs), **kwargs)
        return result

    def lstat(self, path: Any, **kwargs: Any) -> os.stat_result:
        result: os.stat_result = self._old["lstat"](self._found(path, kwargs), **kwargs)
        return result

    def access(self, path: Any, *args: Any, **kwargs: Any) -> bool:
        return bool(self._old["access"](self._found(path, kwargs), *args, **kwargs))

    def _found(self, path: Any, options: dict[str, Any]) -> Any:
        return path if options.get("dir_fd") is not None else self._latest(path)

    def listdir(self, path: Any = ".") -> list[Any]:
        found = [name for folder in self._both(path) for name in self._old["listdir"](folder)]
        return [name for name in dict.fromkeys(found) if self._is_listed(path, name)]

    def scandir(self, path: Any = ".") -> Any:
        both = [self._old["scandir"](one) for one in self._both(path)]
        return both[0] if len(both) == 1 and not self._gone else _Entries(both, path, self._is_listed)

    def _is_listed(self, folder: Any, name: Any) -> bool:
        """Return whether an entry of a folder was not removed, or was made again."""
        if not self._gone or not isinstance(name, str) or not _is_path(folder):
            return True
        path = Path(os.fsdecode(folder), name)
        return self._exists(self._mirror(path)) or not self._is_gone(_whole(path))

    def _both(self, path: Any) -> list[Any]:
        """Return the folder, and the folder in the box that stands for it, as far as they exist."""
        if not _is_path(path) or isinstance(path, bytes) or self._is_free(_whole(path)):
            return [path]
        mirror = self._mirror(path)
        if not self._exists(mirror):
            return [self._latest(path)]
        return [path, mirror] if self._is_there(_whole(path)) else [mirror]

    def mkdir(self, path: Any, *args: Any, **kwargs: Any) -> None:
        whole = _whole(path)
        if self._is_free(whole) or (whole.startswith(self._temporary) and not self._is_gone(whole)):
            self._old["mkdir"](path, *args, **kwargs)
            self._made.add(whole)
        elif self._is_there(whole):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        elif not self._is_there(str(Path(whole).parent)) and not self._exists(str(Path(self._mirror(path)).parent)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        else:
            self._old["mkdir"](self._place(path))

    def rmdir(self, path: Any, *, dir_fd: Any = None) -> None:
        whole = _whole(path)
        if dir_fd is not None or whole in self._made or self._is_free(whole):
            if dir_fd is None and self._exists(self._mirror(path)):
                self._old["rmdir"](self._mirror(path))
            self._old["rmdir"](path, dir_fd=dir_fd)
        elif not self._exists(self._mirror(path)) and not self._is_there(whole):
            self._old["rmdir"](self._latest(path))  # raise the usual error
        elif self.listdir(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        else:
            self._drop(path, self._old["rmdir"])

    def rmtree(self, path: Any, *args: Any, **kwargs: Any) -> None:
        if _whole(path) in self._made or self._is_free(_whole(path)):
            if self._exists(self._mirror(path)):
                self._rmtree(self._mirror(path), *args, **kwargs)
            self._rmtree(path, *args, **kwargs)
        elif self._exists(self._mirror(path)) or self._is_there(_whole(path)):
            self._drop(path, lambda mirror: self._rmtree(mirror, *args, **kwargs))
        else:
            self._rmtree(self._latest(path), *args, **kwargs)  # raise the usual error

    def remove(self, path: Any, *, dir_fd: Any = None) -> None:
        whole = _whole(path)
        if dir_fd is not None or self._is_free(whole):
            self._old["remove"](path, dir_fd=dir_fd)  # in a folder that `rmtree` removes
        elif self._exists(self._mirror(path)) or self._is_there(whole):
            self._drop(path, self._old["remove"])
        else:
            self._old["remove"](self._latest(path))  # raise the usual error

    def _drop(self, path: Any, remove: Any) -> None:
        """Remove what was written to a path, and hide the user's own file."""
        if self._exists(self._mirror(path)):
            remove(self._mirror(path))
        if self._exists(_whole(path)):
            self._gone.add(_whole(path))

    unlink = remove

    def replace(self, source: Any, target: Any, **kwargs: Any) -> None:
        file = self._latest(source)
        if self._is_free(_whole(file)):
            self._old["replace"](file, self._place(target), **kwargs)
        elif Path(file).is_file():
            self._copy(file, self._place(target))
            self._gone.add(_whole(source))
        elif not self._exists(_whole(file)):
            self._old["replace"](source, target, **kwargs)  # raise the usual error

    rename = replace

    def link(self, source: Any, target: Any, **kwargs: Any) -> None:
        """Make a link only in a cache."""
        if self._is_free(_whole(target)):
            self._old["link"](source, target, **kwargs)

    def symlink(self, source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        """Make a link only in a cache."""
        if self._is_free(_whole(target)):
            self._old["symlink"](source, target, *args, **kwargs)


class _Entries:
    """The entries of several folders, as `os.scandir` returns the entries of one folder.

    is_listed: a function of the folder and the name of an entry that returns whether the script sees the entry.
    """

    def __init__(self, iterators: list[Any], folder: Any, is_listed: Callable[[Any, Any], bool]) -> None:
        self._iterators, self._folder, self._is_listed = iterators, folder, is_listed
        self._entries = self._all()

    def _all(self) -> Iterator[Any]:
        names: set[str] = set()
        for iterator in self._iterators:
            for entry in iterator:
                if entry.name not in names and self._is_listed(self._folder, entry.name):
                    names.add(entry.name)
                    yield entry

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def close(self) -> None:
        for iterator in self._iterators:
            iterator.close()

    def __enter__(self) -> "_Entries":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_path(file: Any) -> bool:
    return isinstance(file, str | bytes | os.PathLike)


def _whole(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))
