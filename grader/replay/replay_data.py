"""The files of the data sets that replays read: embedded, from the cache of this machine, or sent by another one."""

import threading
from collections.abc import Mapping
from pathlib import Path

from grader.replay.heldout_data import heldout_archive
from harness.data import EMBEDDED
from harness.data.loading import load_dataset, subset_file


class ReplayData:
    """Each data set is read from `cache` once. Any number of threads may share it."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        # Reading images with torchvision changes `sys.modules`: not in two threads at a time.
        self._lock = threading.Lock()
        self._subsets: dict[str, bytes] = {}
        self._heldout: dict[str, bytes] = {}

    def subset(self, name: str) -> bytes:
        """Return the .npz that runs train on. Raises `UserError` where the data set is not on this machine."""
        with self._lock:
            if name not in self._subsets:
                load_dataset(name, cache=self._cache)
                self._subsets[name] = subset_file(name, self._cache).read_bytes()
            return self._subsets[name]

    def heldout(self, name: str) -> bytes:
        """Return the .npz of the images that no student has. Raises `UserError` as `subset` does."""
        with self._lock:
            if name not in self._heldout:
                self._heldout[name] = heldout_archive(name, self._cache)
            return self._heldout[name]

    def inputs(self, name: str) -> Mapping[str, bytes]:
        """Return the files of a data set as they lie below /input; embedded data comes with the harness."""
        if name in EMBEDDED:
            return {}
        path = subset_file(name, self._cache).relative_to(self._cache)
        return {f"cache/{path.as_posix()}": self.subset(name)}

    def take(self, name: str, subset: bytes, heldout: bytes) -> None:
        """Take both files of a data set from another machine, in place of those of this one."""
        with self._lock:
            self._subsets[name], self._heldout[name] = subset, heldout
