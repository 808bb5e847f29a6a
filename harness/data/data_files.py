"""Checks the files of a data set that came from elsewhere: all there, whole, and the published ones."""

import gzip
import hashlib
import shutil
import zlib
from pathlib import Path

from harness.errors import UserError


class IncompleteFilesError(UserError):
    """Files are missing or cut short, and a download would bring them."""


def require_files(name: str, folder: Path, files: list[str]) -> None:
    """Raise IncompleteFilesError, which says where to put what, unless all of `files` are in `folder`."""
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise IncompleteFilesError(
            f"The data set {name} is not complete in {folder}: fetch it with `make data DATASET={name}`, "
            f"or, without a network, put {', '.join(missing)} there."
        )


def unpack(name: str, packed: Path, target: Path) -> None:
    """Unpack the .gz file `packed` into `target`; raises IncompleteFilesError when it is damaged."""
    try:
        with gzip.open(packed, "rb") as source, target.open("wb") as destination:
            shutil.copyfileobj(source, destination)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise IncompleteFilesError(
            f"{packed} is damaged ({error}): delete it and fetch it again with `make data DATASET={name}`."
        ) from error


def check_digest(name: str, file: Path, expected: str, shown: Path) -> None:
    """Compare `file` with the hex digest `expected`, an MD5 or SHA-256 by its length.

    Raises UserError that names `shown`, the file as the user put it there, when they differ.
    """
    algorithm = "md5" if len(expected) == hashlib.md5(usedforsecurity=False).digest_size * 2 else "sha256"
    with file.open("rb") as content:
        found = hashlib.file_digest(
            content, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()
    if found != expected:
        raise UserError(
            f"{shown} is not the published file of {name}, its {algorithm.upper()} is {found} "
            f"and not {expected}: delete it and fetch it again with `make data DATASET={name}`."
        )
