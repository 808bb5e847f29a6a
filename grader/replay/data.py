"""The data that replays read: the subset that runs train on, and the held-out images that no student has."""

import io
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from harness.data import EMBEDDED
from harness.data.datasets import Split, draw_subset, read_embedded
from harness.data.downloads import read_downloaded
from harness.data.loading import load_dataset, subset_file
from harness.errors import naming
from harness.files import sha256_line, sha256_path, write_with_sha256

HELDOUT_FOLDER = Path(__file__).with_name("heldout")
HELDOUT_IMAGES = 500  # as many as in a validation split


def heldout_archive(name: str, cache: Path) -> bytes:
    """Return an .npz of `images` uint8 (N, C, H, W) and `labels` int64 (N,).

    For MNIST and CIFAR-10 this is a class-balanced part of the test set that shares no image with a student's
    validation split; it is drawn once and kept in `cache`. Raises `UserError` if the data is missing or altered.
    """
    if name in EMBEDDED:
        return _packed(read_embedded(name, ["heldout"], HELDOUT_FOLDER)[0])
    kept = cache / "subsets" / f"{name}-heldout-{HELDOUT_IMAGES}.npz"
    with suppress(OSError):
        data = kept.read_bytes()
        if sha256_path(kept).read_text(encoding="utf-8") == sha256_line(data, kept.name):
            return data
    _, test = read_downloaded(name, cache)
    data = _packed(draw_subset(*test, HELDOUT_IMAGES, 0, from_end=True))
    with naming(kept.parent):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_with_sha256(kept, data)
    return data


def _packed(split: Split) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, images=split.images, labels=split.labels)
    return buffer.getvalue()


class ReplayData:
    """The files of the data sets, read from `cache` once. Threads may share it."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._subsets: dict[str, bytes] = {}
        self._heldout: dict[str, bytes] = {}

    def subset(self, name: str) -> bytes:
        """Return the .npz that runs train on. Raises `UserError` if the data set is not on this machine."""
        with self._lock:
            if name not in self._subsets:
                load_dataset(name, cache=self._cache)
                self._subsets[name] = subset_file(name, self._cache).read_bytes()
            return self._subsets[name]

    def heldout(self, name: str) -> bytes:
        """Return the .npz of held-out images and labels. Raises `UserError` as `subset` does."""
        with self._lock:
            if name not in self._heldout:
                self._heldout[name] = heldout_archive(name, self._cache)
            return self._heldout[name]

    def inputs(self, name: str) -> Mapping[str, bytes]:
        """Return the files of a data set by their path below /input; the harness brings embedded data itself."""
        if name in EMBEDDED:
            return {}
        path = subset_file(name, self._cache).relative_to(self._cache)
        return {f"cache/{path.as_posix()}": self.subset(name)}

    def accept(self, name: str, subset: bytes, heldout: bytes) -> None:
        """Use these files of a data set, which another machine sent."""
        with self._lock:
            self._subsets[name], self._heldout[name] = subset, heldout
