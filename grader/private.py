"""Files that hold grades, answers or names: only their owner reads them, unless the owner has said otherwise."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files import write_whole
from harness.recipes.suite import PACKAGES


@contextmanager
def private_files() -> Iterator[None]:
    """Give what is made in the block no rights for others: 0600 and 0700. It holds for all threads of the process."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def path_beside(reports: Path, name: str) -> Path:
    """Return the path of a file beside a folder of reports, which is replaced as a whole: `<reports>.<name>`."""
    # A folder that is called by dots has no name of its own.
    whole = reports if reports.name not in ("", "..") else reports.resolve()
    return whole.with_name(f"{whole.name}.{name}")


def write_private(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does, for its owner alone. A file that is there keeps its rights."""
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    with private_files():
        write_whole({path: content})
    if mode is not None:
        path.chmod(mode)


def set_rights(folder: Path, like: Path) -> None:
    """Give a folder and the files in it the rights of another folder. Whoever enters that may read its files."""
    mode = like.stat().st_mode & 0o777
    for path in (folder, *folder.rglob("*")):
        path.chmod(mode if path.is_dir() else mode & 0o666)


# Two names or more after a slash. The folders in a sandbox tell nothing about the machine.
_PATH = re.compile(r"(?<![\w./<>-])/(?!(?:input|scratch|dev|proc)\b)[\w.@+~-]+(?:/[\w.@+~%-]+)+/?")


def without_folders(text: str) -> str:
    """Return a message without the folders of this machine: of a path, only the last name stays."""
    for folder in (str(PACKAGES), str(Path("~").expanduser())):  # their names may hold blanks
        text = text.replace(f"{folder}/", "/-/")
    return _PATH.sub(lambda match: match[0].rstrip("/").rpartition("/")[2], text)
