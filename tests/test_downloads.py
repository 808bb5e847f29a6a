"""Downloads come from a server on this machine; nothing here needs a network."""

import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shared_data import SHARED_DATA, needs_shared_data

from harness.data.downloads import download
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


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    with pytest.raises(
        UserError, match=f"could not be downloaded into {in_the_way / 'cache'} .*Not a directory"
    ):
        download("mnist", in_the_way / "cache")
    assert in_the_way.read_text() == "mine"
