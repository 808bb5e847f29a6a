"""Downloads MNIST and CIFAR-10 through torchvision, and reads them from files whose digests it checks first.

A CIFAR-10 file is a pickle, which can run code when it is read: no file is opened before its digest was checked.
"""

import gzip
import hashlib
import os
import shutil
import socket
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.data.torchvision_import import import_torchvision_datasets
from harness.errors import UserError

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]
Checksums = Mapping[str, str]

# SHA-256 of the unpacked files; torchvision checks only the archives, and only when it downloads them.
MNIST_CHECKSUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# MD5: the publisher gives no other digests. torchvision checks the same ones.
CIFAR10_CHECKSUMS = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
    "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
}
_BY_HAND = {
    "mnist": "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
    "t10k-labels-idx1-ubyte.gz into {root}/MNIST/raw",
    "cifar10": "cifar-10-python.tar.gz into {root}",
}
_SERVER_TIMEOUT = 30.0  # seconds without a byte; urllib's default is to wait forever


class IncompleteFilesError(UserError):
    """Files are missing or cut short; a download would bring them."""


def download(name: str, root: Path) -> None:
    """Download and unpack "mnist" or "cifar10" into `root`; progress goes to stderr.

    Archives that are already there with the right digest are unpacked without a network.
    Raises `UserError` without a network, if the server fails, and if `root` cannot be written to.
    """
    loader = getattr(import_torchvision_datasets(), {"mnist": "MNIST", "cifar10": "CIFAR10"}[name])
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SERVER_TIMEOUT)
    try:
        root.mkdir(parents=True, exist_ok=True)
        loader(str(root), download=True)
    except (OSError, RuntimeError, EOFError) as error:
        # torchvision reports each mirror on its own line; our message is one sentence.
        reason = " ".join(str(error).split())
        raise UserError(
            f"The data set {name} could not be downloaded into {root} ({reason}): check the network and the "
            f"folder and run `make data DATASET={name}` again, or put {_BY_HAND[name].format(root=root)} "
            "and run it again."
        ) from error
    finally:
        socket.setdefaulttimeout(before)


def read_source(name: str, root: Path, checksums: Checksums | None = None) -> tuple[Arrays, Arrays]:
    """Return training and test arrays of "mnist" or "cifar10" from the files in `root`.

    checksums: file name to hex digest, in place of the published ones.
    Raises `UserError` if a file is missing, altered or unreadable.
    """
    try:
        if name == "mnist":
            return read_mnist(root, checksums or MNIST_CHECKSUMS)
        return read_cifar10(root, checksums or CIFAR10_CHECKSUMS)
    except OSError as error:
        raise UserError(
            f"The data set {name} cannot be read in {root} ({error}): "
            "check the permissions there and the free space, and run it again."
        ) from error


def read_mnist(root: Path, checksums: Checksums) -> tuple[Arrays, Arrays]:
    """Return training and test arrays from the four files in `root`/MNIST/raw, packed (.gz) or not.

    Images are uint8 (N, 1, 28, 28). Files in that folder do not change: packed ones are unpacked into a temporary
    folder. Raises `UserError` if a file is missing or has the wrong SHA-256.
    """
    raw = root / "MNIST" / "raw"
    _require_files("mnist", raw, [f"{name}.gz" for name in checksums if not (raw / name).is_file()])
    with tempfile.TemporaryDirectory(
        prefix="unpacked-", dir=root if os.access(root, os.W_OK) else None
    ) as scratch:
        staged = Path(scratch, "MNIST", "raw")
        staged.mkdir(parents=True)
        for name, checksum in checksums.items():
            source = raw / name
            if source.is_file():
                (staged / name).symlink_to(source.resolve())
            else:
                source = raw / f"{name}.gz"
                _unpack("mnist", source, staged / name)
            _check_digest("mnist", staged / name, checksum, source)
        loader = import_torchvision_datasets().MNIST
        return _mnist_arrays(loader(scratch, train=True)), _mnist_arrays(loader(scratch, train=False))


def _mnist_arrays(loaded: Any) -> Arrays:
    return loaded.data.numpy()[:, None], loaded.targets.numpy().astype(np.int64)


def read_cifar10(root: Path, checksums: Checksums) -> tuple[Arrays, Arrays]:
    """Return training and test arrays from `root`/cifar-10-batches-py; images are uint8 (N, 3, 32, 32).

    Raises `UserError` if a file is missing or has the wrong MD5.
    """
    folder = root / "cifar-10-batches-py"
    _require_files("cifar10", folder, list(checksums))
    for name, checksum in checksums.items():
        _check_digest("cifar10", folder / name, checksum, folder / name)
    official = import_torchvision_datasets().CIFAR10
    lists = {
        "train_list": [[name, checksums[name]] for name, _ in official.train_list],
        "test_list": [[name, checksums[name]] for name, _ in official.test_list],
        "meta": {**official.meta, "md5": checksums[official.meta["filename"]]},
    }
    loader = type("CIFAR10", (official,), lists)
    return _cifar10_arrays(loader(str(root), train=True)), _cifar10_arrays(loader(str(root), train=False))


def _cifar10_arrays(loaded: Any) -> Arrays:
    return loaded.data.transpose(0, 3, 1, 2), np.array(loaded.targets, dtype=np.int64)


def _require_files(name: str, folder: Path, files: list[str]) -> None:
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise IncompleteFilesError(
            f"The data set {name} is not complete in {folder}: fetch it with `make data DATASET={name}`, "
            f"or, without a network, put {', '.join(missing)} there."
        )


def _unpack(name: str, packed: Path, target: Path) -> None:
    try:
        with gzip.open(packed, "rb") as source, target.open("wb") as destination:
            shutil.copyfileobj(source, destination)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise IncompleteFilesError(
            f"{packed} is damaged ({error}): delete it and fetch it again with `make data DATASET={name}`."
        ) from error


def _check_digest(name: str, file: Path, expected: str, shown: Path) -> None:
    """Compare `file` with an MD5 or SHA-256 (told by its length); `shown` is the path that the user knows."""
    algorithm = "md5" if len(expected) == 32 else "sha256"
    with file.open("rb") as content:
        found = hashlib.file_digest(
            content, lambda: hashlib.new(algorithm, usedforsecurity=False)
        ).hexdigest()
    if found != expected:
        raise UserError(
            f"{shown} is not the published file of {name}, its {algorithm.upper()} is {found} "
            f"and not {expected}: delete it and fetch it again with `make data DATASET={name}`."
        )
