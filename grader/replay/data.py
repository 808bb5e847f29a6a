"""Read the data for replays: the subset for training, and the held-out examples that students never get."""

import io
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.data import DATASETS, EMBEDDED
from harness.data.datasets import draw_subset, read_embedded, read_listed
from harness.data.loading import load_dataset, read_downloaded, subset_file
from harness.errors import UserError

HELDOUT_FOLDER = Path(__file__).with_name("heldout")
_HELDOUT_IMAGES = 500  # the size of a validation split


class DataFiles(NamedTuple):
    """The contents of two files: the subset for training, and the held-out inputs and labels.

    Both are .npz files with arrays of the shapes and types that `harness.data.datasets.Split` describes. For a data set
    in the repository, `subset` is empty, because the harness contains this data. For a data set of the kind "files",
    `heldout` has the form of its file `val.*`.
    """

    subset: bytes
    heldout: bytes


def read_files(name: str, cache: Path) -> DataFiles:
    """Return the two files of a data set. `cache` is the folder of MNIST and CIFAR-10.

    The held-out images of MNIST and CIFAR-10 are a class-balanced part of the test set, without the images in a
    student's validation split. Raises `UserError` if the data is missing or altered.
    """
    if DATASETS[name].kind == "files":
        [path] = HELDOUT_FOLDER.glob(f"{name}.*")
        return DataFiles(b"", read_listed(path.name, HELDOUT_FOLDER))
    if name in EMBEDDED:
        subset, heldout = b"", read_embedded(name, ["heldout"], HELDOUT_FOLDER)[0]
    else:
        load_dataset(name, cache=cache)
        subset = subset_file(name, cache).read_bytes()
        _, test = read_downloaded(name, cache)
        heldout = draw_subset(*test, _HELDOUT_IMAGES, 0, from_end=True)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, inputs=heldout.inputs, labels=heldout.labels)
    return DataFiles(subset, buffer.getvalue())


class ReplayData:
    """The files of the data sets; each file is read from `cache` only once. Threads may share one object."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._files: dict[str, DataFiles] = {}

    def files(self, name: str) -> DataFiles:
        """Return the files of a data set. Raises `UserError` if the data set is not on this machine.

        The message of the error names no folder, because students' pages show it. The reason goes to standard error.
        """
        with self._lock:
            if name not in self._files:
                try:
                    self._files[name] = read_files(name, self._cache)
                except UserError as error:
                    print(error, file=sys.stderr)
                    raise UserError(f"the grader has no copy of {name}") from error
            return self._files[name]

    def inputs(self, name: str) -> Mapping[str, bytes]:
        """Return {path in /input: content} with the files that a run needs. Raises `UserError` as `files` does."""
        if name in EMBEDDED:
            return {}
        path = subset_file(name, self._cache).relative_to(self._cache)
        return {f"cache/{path.as_posix()}": self.files(name).subset}

    def accept(self, name: str, files: DataFiles) -> None:
        """Store the files of a data set that another machine has sent."""
        with self._lock:
            self._files[name] = files
