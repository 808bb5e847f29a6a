"""The data of a script: a folder with the files `train.*` and `val.*`, for its option `--data`.

A data set of the kind "files" is stored as it is, in `embedded/<name>/`. The arrays of another data set become
`train.npz` and `val.npz`, each with `inputs` and `labels`, as `harness.data.datasets.Split` describes them.
"""

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.data import DATASETS
from harness.data.datasets import EMBEDDED_FOLDER, Split, read_listed
from harness.data.loading import load_dataset
from harness.errors import UserError, suggestion
from harness.files import write_whole


@dataclass(frozen=True)
class DataFolder:
    """The files of a data set by name, and their SHA-256 (hex)."""

    name: str
    files: Mapping[str, bytes]
    digest: str

    def write(self, folder: Path) -> Path:
        """Write the files into a folder, which is made if it is missing. Return the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        write_whole({folder / name: content for name, content in self.files.items()}, durable=False)
        return folder

    def with_validation(self, content: bytes) -> "DataFolder":
        """Return the same training examples with other validation examples, given as the content of their file."""
        [name] = [name for name in self.files if name.startswith("val.")]
        return DataFolder(self.name, {**self.files, name: content}, "")


def load_folder(name: str, cache: Path | None = None) -> DataFolder:
    """Return the data of a script, without downloading anything. Raises `UserError` as `load_dataset` does."""
    if name not in DATASETS:
        raise UserError(f"There is no data set {name!r}: {suggestion(name, list(DATASETS))}")
    if DATASETS[name].kind != "files":
        data = load_dataset(name, cache=cache)
        files = {"train.npz": npz_bytes(data.train), "val.npz": npz_bytes(data.validation)}
        return DataFolder(name, files, data.digest)
    paths = sorted((EMBEDDED_FOLDER / name).iterdir())
    files = {path.name: read_listed(f"{name}/{path.name}", EMBEDDED_FOLDER) for path in paths}
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file} {len(content)}\n".encode() + content)
    return DataFolder(name, files, digest.hexdigest())


def npz_bytes(split: Split) -> bytes:
    """Return the bytes of an .npz file with the arrays `inputs` and `labels` of a split."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, inputs=split.inputs, labels=split.labels)
    return buffer.getvalue()
