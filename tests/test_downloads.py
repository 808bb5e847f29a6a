"""Downloads come from a server on this machine; nothing here needs a network."""

import functools
import gzip
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_data import SHARED_DATA, link_shared_data, needs_shared_data, shared_cifar10_checksums

from harness.data.downloads import (
    CIFAR10_CHECKSUMS,
    MNIST_CHECKSUMS,
    IncompleteFilesError,
    read_cifar10,
    read_mnist,
)
from harness.data.loading import fetch_dataset, load_dataset
from harness.data.torchvision_import import import_torchvision_datasets
from harness.errors import UserError


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: torchvision first asks where an address leads, and hangs up at the answer."""


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A mirror of MNIST with the files of ../shared/data, which were packed anew and so have other MD5s."""
    folder = SHARED_DATA / "MNIST" / "raw"
    handler = functools.partial(_Silent, directory=str(folder))
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}/"
        loader = import_torchvision_datasets().MNIST
        resources = [
            (name, hashlib.md5((folder / name).read_bytes(), usedforsecurity=False).hexdigest())
            for name, _ in loader.resources
        ]
        monkeypatch.setattr(loader, "mirrors", [address])
        monkeypatch.setattr(loader, "resources", resources)
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        yield address
        server.shutdown()
        thread.join()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses where nothing listens, so that the tests say the same with and without a network."""
    datasets = import_torchvision_datasets()
    monkeypatch.setattr(datasets.MNIST, "mirrors", ["http://127.0.0.1:9/"])
    monkeypatch.setattr(datasets.CIFAR10, "url", "http://127.0.0.1:9/cifar-10-python.tar.gz")
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@needs_shared_data
@pytest.mark.usefixtures("mirror")
def test_mnist_is_downloaded_verified_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    cut_short = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte.gz"
    cut_short.parent.mkdir(parents=True)
    cut_short.write_bytes((SHARED_DATA / "MNIST" / "raw" / cut_short.name).read_bytes()[:100_000])
    for file in (SHARED_DATA / "MNIST" / "raw").iterdir():
        if file.name != cut_short.name:
            (cut_short.parent / file.name).write_bytes(file.read_bytes())

    dataset = fetch_dataset("mnist", tmp_path)
    assert np.bincount(dataset.train.labels).tolist() == [200] * 10
    assert "100" in capfd.readouterr().err
    assert load_dataset("mnist", cache=tmp_path).digest == dataset.digest


@needs_shared_data
@pytest.mark.usefixtures("no_network")
def test_files_already_there_need_no_network(tmp_path: Path) -> None:
    (tmp_path / "MNIST").symlink_to((SHARED_DATA / "MNIST").resolve(), target_is_directory=True)
    assert len(fetch_dataset("mnist", tmp_path).train) == 2000


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "files", "folder"),
    [
        ("mnist", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"], "MNIST/raw"),
        ("cifar10", ["cifar-10-python.tar.gz"], ""),
    ],
)
def test_without_a_network_the_user_is_told_where_to_put_the_files(
    name: str, files: list[str], folder: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refusal:
        fetch_dataset(name, tmp_path)
    message = str(refusal.value)
    assert "Connection refused" in message
    assert "\n" not in message
    assert f"into {tmp_path / folder} " in message
    assert all(file in message for file in files)


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


_PACKED = gzip.compress(bytes(range(256)) * 20, mtime=0)


@pytest.mark.parametrize(
    "content", [b"text", _PACKED[:-5], _PACKED[:40], _PACKED[:30] + b"\xff" * 20 + _PACKED[50:]]
)
def test_a_damaged_packed_file_is_named(content: bytes, tmp_path: Path) -> None:
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    (raw / "data.gz").write_bytes(content)
    with pytest.raises(IncompleteFilesError, match=r"data\.gz is damaged .*delete it"):
        read_mnist(tmp_path, {"data": "0" * 64})
