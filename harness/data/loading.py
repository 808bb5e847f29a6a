"""Loads a data set by name: two that the repository carries, two that are downloaded.

The first use of MNIST or CIFAR-10 draws a subset and keeps it in one file, which later uses read.
"""

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from harness.data import DATASETS, EMBEDDED
from harness.data.datasets import Dataset, Split, draw_subset, read_embedded
from harness.data.downloads import IncompleteFilesError, download, read_downloaded
from harness.errors import UserError
from harness.files import cache_folder, write_whole

# Part of the name of every cached subset: raise it when the drawing changes.
_DRAWING_VERSION = 1
_TRAIN_SIZE, _VALIDATION_SIZE, _SEED = 2000, 500, 0
_SPLITS = ("train", "validation")


def default_cache() -> Path:
    """Return the folder of downloaded data: $TRAINWRECK_DATA, else trainwreck in the user's cache folder."""
    return cache_folder("TRAINWRECK_DATA")


def subset_file(name: str, cache: Path) -> Path:
    """Return the path at which the drawn subset of a large data set is kept."""
    return cache / "subsets" / f"{name}-{_TRAIN_SIZE}-{_VALIDATION_SIZE}-seed{_SEED}.v{_DRAWING_VERSION}.npz"


def load_dataset(name: str, *, cache: Path | None = None) -> Dataset:
    """Return a data set from this machine, without downloading anything.

    "digits" and "shapes" come whole. "mnist" and "cifar10" are class-balanced subsets of the files in `cache` (default:
    `default_cache()`): 2,000 images of the training set, and 500 of the test set for validation.
    Raises `UserError` for an unknown name, a missing or altered file, and a full disk.
    """
    if name not in DATASETS:
        raise UserError(f"There is no data set {name!r}: choose one of {', '.join(DATASETS)}.")
    if name in EMBEDDED:
        return Dataset.of(name, *read_embedded(name, _SPLITS))
    root = default_cache() if cache is None else cache
    kept = subset_file(name, root)
    if known := read_subset(kept, name):
        return known
    train, test = read_downloaded(name, root)
    drawn = Dataset.of(
        name, draw_subset(*train, _TRAIN_SIZE, _SEED), draw_subset(*test, _VALIDATION_SIZE, _SEED)
    )
    write_subset(kept, drawn)
    return drawn


def fetch_dataset(name: str, cache: Path | None = None) -> Dataset:
    """Like `load_dataset`, but download missing files first, with a progress bar on stderr.

    Raises `UserError` without a network too; the message says which files to put where.
    """
    root = default_cache() if cache is None else cache
    try:
        return load_dataset(name, cache=root)
    except IncompleteFilesError:
        download(name, root)
        return load_dataset(name, cache=root)


def read_subset(path: Path, name: str) -> Dataset | None:
    """Return the data set stored at `path`, or None if there is none or its digest is wrong."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            splits = [Split(arrays[f"{split}_images"], arrays[f"{split}_labels"]) for split in _SPLITS]
            stored = str(arrays["digest"])
    except Exception:  # NumPy raises nearly anything for a file that is cut short or altered
        return None
    dataset = Dataset.of(name, *splits)
    return dataset if dataset.digest == stored else None


def write_subset(path: Path, dataset: Dataset) -> None:
    """Store `dataset` at `path`, whole or not at all.

    A cache that cannot be written (read-only, full) is no error: the next run draws the subset again.
    """
    buffer, arrays = io.BytesIO(), dict[str, np.ndarray[Any, Any]]()
    for name, split in zip(_SPLITS, (dataset.train, dataset.validation), strict=True):
        arrays |= {f"{name}_images": split.images, f"{name}_labels": split.labels}
    np.savez(buffer, allow_pickle=False, **arrays, digest=np.array(dataset.digest))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({path: buffer.getvalue()})
