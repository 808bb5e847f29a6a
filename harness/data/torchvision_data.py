"""Reads MNIST and CIFAR-10 with torchvision, from files whose digests were checked first.

A CIFAR-10 file is a pickle, which may run code when it is read: none is opened unchecked.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.data.data_files import check_digest, require_files, unpack
from harness.data.torchvision_import import import_torchvision_datasets

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]
Checksums = Mapping[str, str]

# SHA-256 of the unpacked files; torchvision itself only looks at the archives, and only as it fetches them.
MNIST_CHECKSUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
# MD5, the only digests that the publisher gives; torchvision checks the same ones.
CIFAR10_CHECKSUMS = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
    "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
}


def read_mnist(root: Path, checksums: Checksums) -> tuple[Arrays, Arrays]:
    """Read `root`/MNIST/raw, its four files packed (.gz) or not, and return training and test arrays.

    Images are uint8 (N, 1, 28, 28). Nothing in that folder is changed: packed files are unpacked beside it,
    for as long as the reading takes.
    Raises UserError when a file is missing or has the wrong SHA-256.
    """
    raw = root / "MNIST" / "raw"
    require_files("mnist", raw, [f"{name}.gz" for name in checksums if not (raw / name).is_file()])
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
                unpack("mnist", source, staged / name)
            check_digest("mnist", staged / name, checksum, source)
        loader = import_torchvision_datasets().MNIST
        return _mnist_arrays(loader(scratch, train=True)), _mnist_arrays(loader(scratch, train=False))


def _mnist_arrays(loaded: Any) -> Arrays:
    return loaded.data.numpy()[:, None], loaded.targets.numpy().astype(np.int64)


def read_cifar10(root: Path, checksums: Checksums) -> tuple[Arrays, Arrays]:
    """Read `root`/cifar-10-batches-py and return training and test arrays.

    Images are uint8 (N, 3, 32, 32).
    Raises UserError when a file is missing or has the wrong MD5.
    """
    folder = root / "cifar-10-batches-py"
    require_files("cifar10", folder, list(checksums))
    for name, checksum in checksums.items():
        check_digest("cifar10", folder / name, checksum, folder / name)
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


@dataclass(frozen=True)
class Source:
    """How torchvision knows a data set, and how its files are checked and read."""

    class_name: str
    checksums: Checksums
    read: Callable[[Path, Checksums], tuple[Arrays, Arrays]]


SOURCES = {
    "mnist": Source("MNIST", MNIST_CHECKSUMS, read_mnist),
    "cifar10": Source("CIFAR10", CIFAR10_CHECKSUMS, read_cifar10),
}
