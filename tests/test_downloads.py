"""Downloads from a server on this machine, so these tests need no network."""

import functools
import gzip
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.shared_data import SHARED_DATA, accept_stand_in, needs_shared_data

from harness.data import loading
from harness.data.loading import CHECKSUMS, IncompleteFilesError, fetch_dataset, load_dataset, read_downloaded
from harness.errors import UserError

MNIST, CIFAR10 = Path("MNIST", "raw"), Path("cifar-10-batches-py")


def serve_from(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    for name in ("MNIST_URL", "CIFAR10_URL"):
        monkeypatch.setattr(loading, name, address)
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the MNIST files of ../shared/data."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SHARED_DATA / "MNIST" / "raw"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        serve_from(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    serve_from(monkeypatch, "http://127.0.0.1:9")  # no server listens on this port


@needs_shared_data
@pytest.mark.usefixtures("mirror")
def test_mnist_is_downloaded_if_a_file_is_missing_or_cut_short(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cut_short = tmp_path / MNIST / "train-images-idx3-ubyte.gz"
    cut_short.parent.mkdir(parents=True)
    cut_short.write_bytes((SHARED_DATA / MNIST / cut_short.name).read_bytes()[:100_000])
    dataset = fetch_dataset("mnist", tmp_path)
    assert "100%" in capfd.readouterr().err
    assert load_dataset("mnist", cache=tmp_path).digest == dataset.digest
    assert {path.name for path in cut_short.parent.iterdir()} == {f"{name}.gz" for name in CHECKSUMS["mnist"]}


@needs_shared_data
@pytest.mark.usefixtures("no_network")
def test_cifar10_is_unpacked_from_an_archive_that_is_already_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.make_archive(str(tmp_path / "cifar-10-python"), "gztar", SHARED_DATA, CIFAR10.name)
    with pytest.raises(UserError, match="is not the published file"):  # the substitute has other pixels
        fetch_dataset("cifar10", tmp_path)
    accept_stand_in(monkeypatch)
    assert load_dataset("cifar10", cache=tmp_path)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "file", "folder"),
    [("mnist", "train-images-idx3-ubyte.gz", "MNIST/raw"), ("cifar10", "cifar-10-python.tar.gz", "")],
)
def test_without_a_network_the_user_is_told_where_to_put_the_files(
    name: str, file: str, folder: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refusal:
        fetch_dataset(name, tmp_path)
    assert "Connection refused" in str(refusal.value)
    assert file in str(refusal.value)
    assert f"into {tmp_path / folder} " in str(refusal.value)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


@needs_shared_data
def test_packed_and_unpacked_files_may_be_mixed_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    raw = tmp_path / MNIST
    raw.mkdir(parents=True)
    for path in (SHARED_DATA / MNIST).glob("*.gz"):
        (raw / path.name).write_bytes(path.read_bytes())
    packed = raw / "t10k-labels-idx1-ubyte.gz"
    labels = packed.with_suffix("")
    labels.write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert len(read_downloaded("mnist", tmp_path)[1][1]) == 10_000

    labels.write_bytes(labels.read_bytes()[:-1] + b"\x00")
    with pytest.raises(UserError, match=f"{labels} is not the published file of mnist"):
        read_downloaded("mnist", tmp_path)
    labels.unlink()
    with pytest.raises(IncompleteFilesError, match=rf"{packed} is missing: .*make data DATASET=mnist"):
        read_downloaded("mnist", tmp_path)


def test_an_unknown_pickle_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / CIFAR10).mkdir()
    trap = tmp_path / "sprung"
    for name in CHECKSUMS["cifar10"]:
        (tmp_path / CIFAR10 / name).write_bytes(f"cposix\nsystem\n(S'touch {trap}'\ntR.".encode())
    with pytest.raises(UserError, match="data_batch_1 is not the published file of cifar10"):
        read_downloaded("cifar10", tmp_path)
    assert not trap.exists()


_PACKED = gzip.compress(bytes(range(256)) * 20, mtime=0)


@pytest.mark.parametrize("content", [b"text", _PACKED[:-5], _PACKED[:30] + b"\xff" * 20 + _PACKED[50:]])
def test_a_damaged_packed_file_is_named(content: bytes, tmp_path: Path) -> None:
    raw = tmp_path / MNIST
    raw.mkdir(parents=True)
    (raw / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(IncompleteFilesError, match=r"ubyte\.gz is damaged .*delete it"):
        read_downloaded("mnist", tmp_path)
