"""Keep a child process from writing the user's files: what it opens for writing goes to a temporary folder."""

import builtins
import io
import os
import tempfile
from pathlib import Path
from typing import Any

_WRITES = frozenset("wax+")
_SILENT = {"WANDB_MODE": "disabled", "MLFLOW_TRACKING_URI": "", "COMET_MODE": "disabled", "HF_HUB_OFFLINE": "1"}


def redirect_writes(box: Path) -> None:
    """Redirect the writes of this process to the folder `box` from now on. Who made the folder removes it.

    `open`, `os.open`, `torch.save` and new folders are redirected: a file keeps its name, and gets a folder of its own
    for each original folder. Reading a file that was written here reads the new one. Trackers that send data are
    switched off by their environment variables. Writes of C++ code, other than torch's, are not seen.
    """
    import torch

    temporary = tempfile.gettempdir()  # it tries to write, so ask before writes are redirected
    real_open, real_os_open, real_mkdir, real_save = builtins.open, os.open, os.mkdir, torch.save
    moved: dict[str, str] = {}

    def place_of(path: Any) -> str:
        """Return the redirected path of a file."""
        whole: str = os.path.abspath(os.fsdecode(path))
        if whole.startswith((str(box), os.devnull, "/dev/", "/proc/")):
            return whole
        if whole not in moved:
            folder = box / format(len(moved), "04")
            real_mkdir(folder)
            moved[whole] = str(folder / (Path(whole).name or "file"))
        return moved[whole]

    def is_path(file: Any) -> bool:
        return isinstance(file, str | bytes | os.PathLike)

    def own_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if is_path(file):
            whole = os.path.abspath(os.fsdecode(file))
            if _WRITES & set(mode):
                if "a" in mode or "+" in mode:
                    _copy_once(whole, place_of(file), real_open)
                file = place_of(file)
            else:
                file = moved.get(whole, file)
        return real_open(file, mode, *args, **kwargs)

    def own_os_open(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if is_path(path) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = place_of(path)
        return real_os_open(path, flags, *args, **kwargs)

    def own_mkdir(path: Any, *args: Any, **kwargs: Any) -> None:
        if str(os.path.abspath(os.fsdecode(path))).startswith((str(box), temporary)):
            real_mkdir(path, *args, **kwargs)

    def own_save(thing: Any, file: Any, *args: Any, **kwargs: Any) -> None:
        real_save(thing, place_of(file) if is_path(file) else file, *args, **kwargs)

    builtins.open = io.open = own_open
    os.open, os.mkdir = own_os_open, own_mkdir
    torch.save = own_save  # type: ignore[assignment]
    os.environ.update(_SILENT)


def _copy_once(source: str, target: str, real_open: Any) -> None:
    """Copy a file that is opened for appending, so that the child sees its content."""
    if Path(target).exists() or not Path(source).is_file():
        return
    with real_open(source, "rb") as old, real_open(target, "wb") as new:
        new.write(old.read())
