import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_data import SHARED_DATA, link_shared_data, needs_shared_data, shared_cifar10_checksums

from harness.data.data_files import IncompleteFilesError
from harness.data.torchvision_data import CIFAR10_CHECKSUMS, MNIST_CHECKSUMS, read_cifar10, read_mnist
from harness.data.torchvision_import import import_torchvision_datasets
from harness.errors import UserError


def test_our_checksums_of_cifar10_are_those_of_torchvision() -> None:
    official = import_torchvision_datasets().CIFAR10
    lists = dict([*official.train_list, *official.test_list])
    assert {**lists, official.meta["filename"]: official.meta["md5"]} == CIFAR10_CHECKSUMS


@needs_shared_data
def test_packed_mnist_is_read_whole_and_its_folder_is_left_alone(tmp_path: Path) -> None:
    cache = link_shared_data(tmp_path)
    before = sorted((SHARED_DATA / "MNIST").rglob("*"))
    train, test = read_mnist(cache, MNIST_CHECKSUMS)
    assert train[0].shape == (60_000, 1, 28, 28)
    assert np.bincount(test[1]).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert train[0].dtype == np.uint8
    assert train[1].dtype == np.int64
    assert sorted((SHARED_DATA / "MNIST").rglob("*")) == before
    assert sorted(path.name for path in cache.iterdir()) == ["MNIST", "cifar-10-batches-py"]


@needs_shared_data
def test_unpacked_and_packed_files_may_be_mixed_and_an_altered_one_is_named(tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    shutil.copytree(SHARED_DATA / "MNIST" / "raw", raw)
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        packed = raw / f"{name}.gz"
        packed.chmod(0o644)
        (raw / name).write_bytes(gzip.decompress(packed.read_bytes()))
        raw.chmod(0o755)
        packed.unlink()
    assert len(read_mnist(tmp_path, MNIST_CHECKSUMS)[1][1]) == 10_000

    labels = raw / "t10k-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\x00")
    with pytest.raises(UserError, match=f"{labels} is not the published file of mnist"):
        read_mnist(tmp_path, MNIST_CHECKSUMS)

    labels.unlink()
    with pytest.raises(IncompleteFilesError, match=r"put t10k-labels-idx1-ubyte\.gz there"):
        read_mnist(tmp_path, MNIST_CHECKSUMS)

    (raw / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(b"other labels"))
    with pytest.raises(UserError, match=r"t10k-labels-idx1-ubyte\.gz is not the published file"):
        read_mnist(tmp_path, MNIST_CHECKSUMS)


@needs_shared_data
def test_cifar10_is_read_in_channels_first_order(tmp_path: Path) -> None:
    train, test = read_cifar10(link_shared_data(tmp_path), shared_cifar10_checksums())
    assert train[0].shape == (5_000, 3, 32, 32)
    assert np.bincount(test[1]).tolist() == [100] * 10
    assert train[0].dtype == np.uint8
    assert train[1].dtype == np.int64
    # Neighbouring pixels are alike in a photograph, and would not be with the axes mixed up.
    steps = np.abs(np.diff(test[0].astype(int), axis=3)).mean()
    assert steps < 15


@needs_shared_data
def test_a_cifar10_file_that_is_not_the_published_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"cifar-10-batches-py/data_batch_1 is not the published file of cifar10"
    ):
        read_cifar10(link_shared_data(tmp_path), CIFAR10_CHECKSUMS)


def test_an_unknown_pickle_is_never_opened(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    trap = tmp_path / "sprung"
    for name in CIFAR10_CHECKSUMS:
        (folder / name).write_bytes(f"cposix\nsystem\n(S'touch {trap}'\ntR.".encode())
    with pytest.raises(UserError, match="is not the published file"):
        read_cifar10(tmp_path, CIFAR10_CHECKSUMS)
    assert not trap.exists()
