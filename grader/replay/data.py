"""Read the data for replays: the subset that runs train on, and the held-out examples that no student has."""

import io
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from harness.data import EMBEDDED
from harness.data.datasets import draw_subset, read_embedded
from harness.data.loading import load_dataset, read_downloaded, subset_file
from harness.errors import UserError

HELDOUT_FOLDER = Path(__file__).with_name("heldout")
_HELDOUT_IMAGES = 500  # the size of a validation split


class DataFiles(NamedTuple):
    """Two .npz files of a data set: the subset that runs train on, and held-out `inputs` and `labels`.

    Both have the form of `harness.data.datasets.Split`. For embedded data, the subset is empty here, because the
    harness contains it.
    """

    subset: bytes
    heldout: bytes


def read_files(name: str, cache: Path) -> DataFiles:
    """Return the two files of a data set. `cache` is the folder of MNIST and CIFAR-10.

    Their held-out images are a class-balanced part of the test set that shares no image with a student's validation
    split. Raises `UserError` if the data is missing or altered.
    """
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
    """The files of the data sets, each read from `cache` only once. Threads may share it."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._files: dict[str, DataFiles] = {}

    def files(self, name: str) -> DataFiles:
        """Return the files of a data set. Raises `UserError` if the data set is not on this machine.

        The error's message names no folder, because pages show it. The reason goes to standard error.
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
        """Return the files of a data set for a run, by path in /input. Raises `UserError` as `files` does."""
        if name in EMBEDDED:
            return {}
        path = subset_file(name, self._cache).relative_to(self._cache)
        return {f"cache/{path.as_posix()}": self.files(name).subset}

    def accept(self, name: str, files: DataFiles) -> None:
        """Store the files of a data set that another machine has sent."""
        with self._lock:
            self._files[name] = files
