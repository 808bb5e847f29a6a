"""Reads the archives that the repository carries, and refuses one that was altered."""

import hashlib
import io
from pathlib import Path

import numpy as np

from harness.data.image_sets import Split
from harness.errors import UserError

STUDENTS_FOLDER = Path(__file__).parent / "embedded"


def read_embedded_split(name: str, split: str, folder: Path = STUDENTS_FOLDER) -> Split:
    """Read one split of `folder`/`name`.npz, after comparing the file with the SHA256SUMS beside it.

    `split` is "train" or "validation", or "heldout" in the folder that only the grader has.
    Raises UserError when a file is missing or is not the one that SHA256SUMS lists.
    """
    return read_embedded_splits(name, (split,), folder)[0]


def read_embedded_splits(name: str, splits: tuple[str, ...], folder: Path = STUDENTS_FOLDER) -> list[Split]:
    """Like `read_embedded_split` for several splits of one archive, which is read and checked once."""
    archive = folder / f"{name}.npz"
    content = _checked_content(archive)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return [Split(arrays[f"{split}_images"], arrays[f"{split}_labels"]) for split in splits]


def _checked_content(archive: Path) -> bytes:
    sums = archive.parent / "SHA256SUMS"
    try:
        content = archive.read_bytes()
        lines = sums.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"The embedded data set {archive} or {sums.name} beside it cannot be read ({error}): "
            f"restore both with `git checkout -- {archive.parent}`."
        ) from error
    if f"{hashlib.sha256(content).hexdigest()}  {archive.name}" not in lines:
        raise UserError(
            f"{archive} was altered, its SHA-256 is not the one in {sums.name} beside it: "
            f"restore both with `git checkout -- {archive.parent}`."
        )
    return content
