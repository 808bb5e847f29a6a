"""Keeps the drawn subset of a large data set in one file: the next run need not import torchvision."""

import io
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np

from harness.data.image_sets import Dataset, Split
from harness.files import write_whole

_SPLITS = ("train", "validation")

# What NumPy and zipfile raise for a file that is cut short, altered, or something else altogether.
_DAMAGE = (
    *(OSError, EOFError, ValueError, TypeError, KeyError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)


def read_cached(path: Path, name: str) -> Dataset | None:
    """Return the data set stored at `path`, or None when there is none or its digest does not hold."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            splits = [Split(arrays[f"{split}_images"], arrays[f"{split}_labels"]) for split in _SPLITS]
            stored = str(arrays["digest"])
    except _DAMAGE:
        return None
    dataset = Dataset.of(name, *splits)
    return dataset if dataset.digest == stored else None


def write_cached(path: Path, dataset: Dataset) -> None:
    """Store `dataset` at `path`, whole or not at all.

    A cache that cannot be written (read-only, full) is no error: the next run draws the subset again.
    """
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        train_images=dataset.train.images,
        train_labels=dataset.train.labels,
        validation_images=dataset.validation.images,
        validation_labels=dataset.validation.labels,
        digest=np.array(dataset.digest),
    )
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({path: buffer.getvalue()})
