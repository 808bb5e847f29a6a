"""Write files with grades, answers or names so that only their owner can read them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files import write_whole
from harness.recipes.suite import PACKAGES


@contextmanager
def private_files() -> Iterator[None]:
    """In the block, create files (0600) and folders (0700) without rights for others. This affects all threads."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def path_beside(reports: Path, name: str) -> Path:
    """Return the path `<reports>.<name>`, next to a folder of reports, because that folder is replaced as a whole."""
    # "." and ".." are not names, so resolve them.
    whole = reports if reports.name not in ("", "..") else reports.resolve()
    return whole.with_name(f"{whole.name}.{name}")


def write_private(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does, readable only by its owner. An existing file keeps its rights."""
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    with private_files():
        write_whole({path: content})
    if mode is not None:
        path.chmod(mode)


def set_rights(folder: Path, like: Path) -> None:
    """Give a folder and its content the rights of another folder. Users who may enter that one may read these files."""
    mode = like.stat().st_mode & 0o777
    for path in (folder, *folder.rglob("*")):
        path.chmod(mode if path.is_dir() else mode & 0o666)


# A path of two or more names. Paths inside the sandbox reveal nothing about the machine, so they are not matched.
_PATH = re.compile(r"(?<![\w./<>-])/(?!(?:input|scratch|dev|proc)\b)[\w.@+~-]+(?:/[\w.@+~%-]+)+/?")


def without_folders(text: str) -> str:
    """Return a message in which every path of this machine is shortened to its last part."""
    for folder in (str(PACKAGES), str(Path("~").expanduser())):  # their names may contain spaces
        text = text.replace(f"{folder}/", "/-/")
    return _PATH.sub(lambda match: match[0].rstrip("/").rpartition("/")[2], text)
