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
    """Give only the owner access to files (0600) and folders (0700) created in the block, by any thread."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def path_beside(reports: Path, name: str) -> Path:
    """Return the path `<reports>.<name>`, next to the folder `reports`, which new reports replace completely."""
    # A folder such as "." or ".." has no name, so resolve the path first.
    whole = reports if reports.name not in ("", "..") else reports.resolve()
    return whole.with_name(f"{whole.name}.{name}")


def write_private(path: Path, content: bytes) -> None:
    """Write a file with `write_whole`. Only the owner may read a new file. An existing file keeps its access rights."""
    mode = path.stat().st_mode & 0o777 if path.exists() else None
    with private_files():
        write_whole({path: content})
    if mode is not None:
        path.chmod(mode)


def set_rights(folder: Path, like: Path) -> None:
    """Give `folder` and its content the access rights of the folder `like`, without the right to run files."""
    mode = like.stat().st_mode & 0o777
    for path in (folder, *folder.rglob("*")):
        path.chmod(mode if path.is_dir() else mode & 0o666)


# A pattern for a path of two or more names. It does not match paths inside the sandbox, because these paths reveal
# nothing about the machine.
_PATH = re.compile(r"(?<![\w./<>-])/(?!(?:input|scratch|dev|proc)\b)[\w.@+~-]+(?:/[\w.@+~%-]+)+/?")


def without_folders(text: str) -> str:
    """Return a message in which every path of this machine is shortened to its last part."""
    for folder in (str(PACKAGES), str(Path("~").expanduser())):  # the pattern fails if these paths contain spaces
        text = text.replace(f"{folder}/", "/-/")
    return _PATH.sub(lambda match: match[0].rstrip("/").rpartition("/")[2], text)
