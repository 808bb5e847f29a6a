"""Data sets and their splits, the data archives in the repository, and class-balanced subsets.

This module does not import torch.
"""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError

EMBEDDED_FOLDER = Path(__file__).parent / "embedded"
CLASSES = 10


@dataclass(frozen=True)
class Split:
    """Examples and their labels, in a fixed order.

    inputs: images, uint8 (N, C, H, W), 0 is black and 255 is full brightness; rows of a table, float32 (N, F); or texts
        of symbols, uint8 (N, T).
    labels: class indices, int64 (N,); or measured numbers, float32 (N,).
    """

    inputs: NDArray[Any]
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """The data set that students get: training and validation split, and the SHA-256 (hex) of their four arrays."""

    name: str
    train: Split
    validation: Split
    digest: str

    @classmethod
    def of(cls, name: str, train: Split, validation: Split) -> Self:
        """Return a data set that consists of these two splits, and compute its digest."""
        return cls(name, train, validation, digest_of_splits(train, validation))


def digest_of_splits(*splits: Split) -> str:
    """Return the SHA-256 (hex) of the types, shapes and bytes of all arrays in these splits, in order."""
    digest = hashlib.sha256()
    for split in splits:
        for array in (split.inputs, split.labels):
            # Convert to little-endian on every machine, so that the digest depends only on the values.
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.data)
    return digest.hexdigest()


def read_embedded(name: str, splits: Sequence[str], folder: Path = EMBEDDED_FOLDER) -> list[Split]:
    """Return the named splits of a data archive in the repository.

    splits: "train" and "validation" or, in the folder that only the grader has, "heldout".
    Raises `UserError` as `read_archive` does.
    """
    arrays = read_archive(name, folder)
    what = "images" if f"{splits[0]}_images" in arrays else "inputs"
    return [Split(arrays[f"{split}_{what}"], arrays[f"{split}_labels"]) for split in splits]


def read_archive(name: str, folder: Path = EMBEDDED_FOLDER) -> dict[str, NDArray[Any]]:
    """Return the arrays in `folder`/`name`.npz. Raises `UserError` as `read_listed` does."""
    content = read_listed(f"{name}.npz", folder)
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


def read_listed(name: str, folder: Path = EMBEDDED_FOLDER) -> bytes:
    """Return the content of a file in `folder`, after checking its SHA-256.

    The expected SHA-256 is in SHA256SUMS or, for a data set that an instructor added, in a file next to it with the
    suffix `.sha256`. Raises `UserError` if a file is missing or the SHA-256 differs.
    """
    path = folder / name
    sums = path.with_suffix(".sha256")
    if not sums.is_file():
        sums = folder / "SHA256SUMS"
    remedy = f"restore both with `git checkout -- {folder}`."
    try:
        content = path.read_bytes()
        lines = sums.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} or {sums.name} next to it cannot be read ({error}): {remedy}") from error
    if f"{hashlib.sha256(content).hexdigest()}  {name}" not in lines:
        raise UserError(f"{path} was altered, because its SHA-256 is not the one in {sums.name}: {remedy}")
    return content


def draw_subset(
    images: NDArray[Any], labels: NDArray[np.int64], size: int, seed: int, *, from_end: bool = False
) -> Split:
    """Return `size` examples in random order, with the same number of examples from each class.

    The examples of each class are shuffled with `seed`, and the first ones are taken. So with the same seed, a smaller
    subset is part of a larger subset. With `from_end`, examples are taken from the end of each shuffled class. So
    held-out and validation images with the same seed have no image in common if there are enough images for both.

    images: (N, ...); labels: (N,) with values below 10; size: a multiple of 10.
    Raises `UserError` if the size is not a multiple of 10, or is too large.
    """
    each, rest = divmod(size, CLASSES)
    smallest = int(np.bincount(labels, minlength=CLASSES).min())
    if rest or not 0 < each <= smallest:
        raise UserError(
            f"A class-balanced subset of {size} images cannot be drawn: "
            f"choose a multiple of {CLASSES} from {CLASSES} to {CLASSES * smallest}."
        )
    # A new release of NumPy may change the random numbers from default_rng, but never those from RandomState.
    random = np.random.RandomState(seed)
    shuffled = [random.permutation(np.flatnonzero(labels == label)) for label in range(CLASSES)]
    chosen = np.concatenate([members[::-1][:each] if from_end else members[:each] for members in shuffled])
    # Use a new generator, so that the order of a subset does not depend on the draws above.
    order = np.random.RandomState(seed).permutation(chosen)
    return Split(np.ascontiguousarray(images[order]), labels[order])
