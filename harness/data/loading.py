"""Load a data set by name. MNIST and CIFAR-10 are downloaded, and the other data sets are in the repository.

When MNIST or CIFAR-10 is used for the first time, a subset is drawn and stored in one file. Later uses read this file.
"""

import functools
import gzip
import hashlib
import io
import pickle
import socket
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
from numpy.typing import NDArray

from harness.data import DATASETS, EMBEDDED
from harness.data.datasets import Dataset, Split, draw_subset, read_embedded
from harness.errors import UserError
from harness.files import cache_folder, scratch_path, write_whole

# A part of the file name of every stored subset. Increase this number if subsets are drawn differently.
_DRAWING_VERSION = 1
_TRAIN_SIZE, _VALIDATION_SIZE, _SEED = 2000, 500, 0
_SPLITS = ("train", "validation")
Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
CIFAR10_URL = "https://www.cs.toronto.edu/~kriz"
_CIFAR10_ARCHIVE = "cifar-10-python.tar.gz"
_FOLDERS = {"mnist": Path("MNIST", "raw"), "cifar10": Path("cifar-10-batches-py")}
# For each data set, {file: digest}: the SHA-256 of the unpacked files for MNIST, and the MD5 for CIFAR-10, whose
# publisher gives no other digest.
CHECKSUMS: Mapping[str, Mapping[str, str]] = {
    "mnist": {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
    "cifar10": {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
}
_SERVER_TIMEOUT = 30.0  # seconds without a received byte; by default, urllib would wait forever


def default_cache() -> Path:
    """Return the folder for downloaded data: $TRAINWRECK_DATA or, if not set, trainwreck in the user's cache folder."""
    return cache_folder("TRAINWRECK_DATA")


def subset_file(name: str, cache: Path) -> Path:
    """Return the path at which the drawn subset of a large data set is stored."""
    return cache / "subsets" / f"{name}-{_TRAIN_SIZE}-{_VALIDATION_SIZE}-seed{_SEED}.v{_DRAWING_VERSION}.npz"


def load_dataset(name: str, *, cache: Path | None = None) -> Dataset:
    """Return a data set from this machine, without downloading anything.

    "mnist" and "cifar10" are class-balanced subsets of the files in `cache` (default: `default_cache()`). They have
    2,000 images from the original training set, and 500 images from the original test set for validation.
    Raises `UserError` for an unknown name, for a missing or altered file, and if the disk is full.
    """
    if name not in DATASETS:
        raise UserError(f"There is no data set {name!r}: choose one of {', '.join(DATASETS)}.")
    if DATASETS[name].kind == "files":
        raise UserError(f"Only a script can read {name}: choose an experiment that is a script.")
    if name in EMBEDDED:
        return _load_embedded(name)
    root = default_cache() if cache is None else cache
    kept = subset_file(name, root)
    if known := read_subset(kept, name):
        return known
    train, test = read_downloaded(name, root)
    drawn = Dataset.of(name, draw_subset(*train, _TRAIN_SIZE, _SEED), draw_subset(*test, _VALIDATION_SIZE, _SEED))
    write_subset(kept, drawn)
    return drawn


@functools.cache
def _load_embedded(name: str) -> Dataset:
    """Return a data set in the repository. Its arrays are read-only, because all runs in a process share them."""
    dataset = Dataset.of(name, *read_embedded(name, _SPLITS))
    for split in (dataset.train, dataset.validation):
        for array in (split.inputs, split.labels):
            array.setflags(write=False)
    return dataset


def fetch_dataset(name: str, cache: Path | None = None) -> Dataset:
    """Return a data set as `load_dataset` does, but download missing files first, with a progress bar on stderr.

    Raises `UserError` also if there is no network. The message then says which files to put in which folder.
    """
    root = default_cache() if cache is None else cache
    try:
        return load_dataset(name, cache=root)
    except IncompleteFilesError:
        download(name, root)
        return load_dataset(name, cache=root)


def read_subset(path: Path, name: str) -> Dataset | None:
    """Return the data set stored at `path`, or None if it is missing or its digest is wrong."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            splits = [Split(arrays[f"{split}_images"], arrays[f"{split}_labels"]) for split in _SPLITS]
            stored = str(arrays["digest"])
    except Exception:  # for an incomplete or altered file, NumPy may raise almost any exception
        return None
    dataset = Dataset.of(name, *splits)
    return dataset if dataset.digest == stored else None


def write_subset(path: Path, dataset: Dataset) -> None:
    """Store `dataset` at `path` atomically.

    If the cache cannot be written (read-only, full), this does nothing, and the next run draws the subset again.
    """
    buffer, arrays = io.BytesIO(), dict[str, np.ndarray[Any, Any]]()
    for name, split in zip(_SPLITS, (dataset.train, dataset.validation), strict=True):
        arrays |= {f"{name}_images": split.inputs, f"{name}_labels": split.labels}
    np.savez(buffer, allow_pickle=False, **arrays, digest=np.array(dataset.digest))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole({path: buffer.getvalue()})


class IncompleteFilesError(UserError):
    """Files are missing or incomplete, and a download would restore them."""


def download(name: str, root: Path) -> None:
    """Download "mnist" or "cifar10" into `root`, and print the progress to stderr.

    If the archive of CIFAR-10 is already in `root`, it is unpacked without a download. Raises `UserError` if there is
    no network, if the server fails, or if `root` cannot be written.
    """
    folder = root / _FOLDERS[name]
    archives = [folder / f"{file}.gz" for file in CHECKSUMS["mnist"]]
    try:
        if name == "mnist":
            for archive in archives:
                _fetch(f"{MNIST_URL}/{archive.name}", archive)
            return
        archives = [root / _CIFAR10_ARCHIVE]
        if not archives[0].is_file():
            _fetch(f"{CIFAR10_URL}/{_CIFAR10_ARCHIVE}", archives[0])
        with tarfile.open(archives[0]) as tar:
            tar.extractall(root, filter="data")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        by_hand = ", ".join(archive.name for archive in archives)
        raise UserError(
            f"The data set {name} could not be downloaded ({error}): check the network and {root}, and run `make data "
            f"DATASET={name}` again; or put {by_hand} into {archives[0].parent} and run it again."
        ) from error


def _fetch(url: str, path: Path) -> None:
    """Download a file. If the download is interrupted, no incomplete file remains at `path`."""
    from rich.console import Console
    from rich.progress import Progress

    path.parent.mkdir(parents=True, exist_ok=True)
    partial, before = scratch_path(path), socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SERVER_TIMEOUT)
    try:
        with Progress(console=Console(stderr=True)) as progress:
            bar = progress.add_task(path.name)

            def report(blocks: int, size: int, total: int) -> None:
                progress.update(bar, completed=blocks * size, total=total)

            urlretrieve(url, partial, report)  # noqa: S310 (our own address); raises if it is cut short
        partial.replace(path)
    finally:
        socket.setdefaulttimeout(before)
        partial.unlink(missing_ok=True)


def read_downloaded(name: str, root: Path) -> tuple[Arrays, Arrays]:
    """Return training and test arrays of "mnist" or "cifar10" from the files in `root`. Images are uint8 (N, C, H, W).

    Raises `UserError` if a file is missing, altered or unreadable.
    """
    contents = [_content(name, root / _FOLDERS[name], *item) for item in CHECKSUMS[name].items()]
    if (found := _read_with_torchvision(name, root)) is not None:
        return found
    if name == "mnist":
        train_images, train_labels, test_images, test_labels = contents
        return _mnist(train_images, train_labels), _mnist(test_images, test_labels)
    return _cifar10(contents[:-1]), _cifar10(contents[-1:])


def _read_with_torchvision(name: str, root: Path) -> tuple[Arrays, Arrays] | None:
    """Return the arrays as torchvision reads them (extra `vision`), or None if it cannot.

    torchvision raises a `RuntimeError` on import if its operators do not load, for example a CUDA build beside a CPU
    build of torch. It reads MNIST only from unpacked files. Then our own reader is used, which gives the same arrays.
    """
    try:
        from torchvision import datasets

        read = datasets.MNIST if name == "mnist" else datasets.CIFAR10
        splits = [read(str(root), train=train, download=False) for train in (True, False)]
    except (ImportError, OSError, RuntimeError):
        return None
    train, test = ((np.asarray(one.data), np.asarray(one.targets, dtype=np.int64)) for one in splits)
    return (_channels_first(train[0]), train[1]), (_channels_first(test[0]), test[1])


def _channels_first(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return images (N, H, W) or (N, H, W, C) as (N, C, H, W)."""
    images = images[..., None] if images.ndim == 3 else images
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _mnist(images: bytes, labels: bytes) -> Arrays:
    # In the IDX format, the header has 16 bytes in a file with images and 8 bytes in a file with labels.
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28)
    return pixels, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def _cifar10(batches: Sequence[bytes]) -> Arrays:
    loaded = [pickle.loads(batch, encoding="latin1") for batch in batches]  # noqa: S301  # digests checked
    images = np.concatenate([batch["data"] for batch in loaded]).reshape(-1, 3, 32, 32)
    return images, np.concatenate([np.asarray(batch["labels"], dtype=np.int64) for batch in loaded])


def _content(name: str, folder: Path, file: str, digest: str) -> bytes:
    """Return the content of a file, which may be packed (.gz), after checking its digest."""
    path = folder / file
    if name == "mnist" and not path.is_file():
        path = folder / f"{file}.gz"
    again = f"delete it and download it again with `make data DATASET={name}`"
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except FileNotFoundError:
        raise IncompleteFilesError(
            f"The data set {name} is incomplete, because {path} is missing: "
            f"download it with `make data DATASET={name}` or, without a network, put the file there."
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise IncompleteFilesError(f"{path} is damaged ({error}): {again}.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error}): check its permissions.") from error
    algorithm = "md5" if len(digest) == 32 else "sha256"
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != digest:
        raise UserError(
            f"{path} is not the published file of {name}, because its {algorithm.upper()} is {found} and not {digest}: "
            f"{again}."
        )
    return content
