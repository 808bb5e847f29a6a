import gzip
import hashlib
import io
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.files import BLOCK_SIZE, stored_gzip, stored_zlib, write_whole, write_with_sha256


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.pt"
    write_whole({path: b"old"})

    def interrupt(self: Path, target: Path) -> None:
        assert self.read_bytes() == b"new"
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole({path: b"new"})
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_cannot_all_be_written_leave_the_old_ones(tmp_path: Path) -> None:
    old, new = tmp_path / "a", tmp_path / "no folder" / "b"
    old.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        write_whole({old: b"new", new: b"new"})
    assert old.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [old]


def test_sha256sum_agrees(tmp_path: Path) -> None:
    write_with_sha256(tmp_path / "ada.tar.gz", b"content")
    command = ["sha256sum", "--check", "--strict", "ada.tar.gz.sha256"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == "ada.tar.gz: OK\n"


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    contents = [bytes([number]) * 100_000 for number in range(8)]

    def write_often(data: bytes) -> None:
        for _ in range(20):
            write_whole({path: data}, durable=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_often, contents))  # raises the exceptions of the threads
    assert path.read_bytes() in contents
    assert [left.name for left in tmp_path.iterdir()] == ["scores.json"]


@pytest.mark.parametrize("size", [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE, 3 * BLOCK_SIZE + 7])
def test_stored_formats_are_read_by_others_and_block_by_block(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    assert zlib.decompress(stored_zlib(data)) == data
    assert gzip.GzipFile(fileobj=io.BytesIO(stored_gzip(data))).read() == data
    blocks = max(1, -(-size // BLOCK_SIZE))
    assert len(stored_zlib(data)) == size + 5 * blocks + 6
    assert len(stored_gzip(data)) == size + 5 * blocks + 18


def test_the_bytes_are_written_by_the_standard() -> None:
    assert stored_zlib(b"") == bytes.fromhex("7801 010000ffff 00000001")
    assert stored_zlib(b"abc") == bytes.fromhex("7801 010300fcff 616263 024d0127")
    # The header contains no time, no name and no operating system.
    assert stored_gzip(b"abc") == bytes.fromhex("1f8b08000000000000ff 010300fcff 616263 c2412435 03000000")
    digest = hashlib.sha256(stored_gzip(b"trainwreck" * 20000)).hexdigest()
    assert digest == "fecd53f6ec4e48cc6e61a3fe156c97580eec6602b6a264bfaed6df30128122bd"
