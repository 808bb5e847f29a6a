import gzip
import hashlib
import io
import os
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.files import BLOCK_SIZE, sha256_line, stored_gzip, stored_zlib, write_whole, write_with_sha256


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "checkpoint.pt"
    write_whole({path: b"old"})

    def interrupt(self: Path, target: Path) -> None:
        assert self.read_bytes() == b"new"
        assert target == path
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole({path: b"new"})
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["checkpoint.pt"]  # noqa: PTH208
    write_whole({path: b"new"})
    assert path.read_bytes() == b"new"


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(b"old")
    with pytest.raises(TypeError):
        write_whole({path: None})  # type: ignore[dict-item]
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]
    assert path.read_bytes() == b"old"


def test_sha256sum_reads_the_line(tmp_path: Path) -> None:
    data = b"weights"
    (tmp_path / "checkpoint.pt").write_bytes(data)
    line = sha256_line(data, "checkpoint.pt")
    assert line == f"{hashlib.sha256(data).hexdigest()}  checkpoint.pt\n"
    (tmp_path / "checkpoint.pt.sha256").write_text(line)
    subprocess.run(["sha256sum", "--check", "--strict", "checkpoint.pt.sha256"], cwd=tmp_path, check=True)


def test_sha256sum_agrees(tmp_path: Path) -> None:
    write_with_sha256(tmp_path / "ada.tar.gz", b"content")
    done = subprocess.run(
        ["sha256sum", "-c", "ada.tar.gz.sha256"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "ada.tar.gz: OK\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ada.tar.gz", "ada.tar.gz.sha256"]


def test_a_pair_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    old, new = tmp_path / "a", tmp_path / "no folder" / "b"
    old.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        write_whole({old: b"new", new: b"new"})
    assert old.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [old]


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    contents = [bytes([number]) * 100_000 for number in range(8)]

    def write_often(data: bytes) -> None:
        for _ in range(20):
            write_whole({path: data}, durable=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_often, contents))  # raises what went wrong in a thread
    assert path.read_bytes() in contents
    assert [left.name for left in tmp_path.iterdir()] == ["scores.json"]


EDGES = [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 2 * BLOCK_SIZE, 3 * BLOCK_SIZE + 7]


@given(st.binary(max_size=1000))
def test_what_goes_in_comes_out(data: bytes) -> None:
    assert zlib.decompress(stored_zlib(data)) == data
    assert gzip.decompress(stored_gzip(data)) == data


@pytest.mark.parametrize("size", EDGES)
def test_blocks_end_where_they_must(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    decoder = zlib.decompressobj()
    assert decoder.decompress(stored_zlib(data)) == data
    assert decoder.eof
    assert decoder.unused_data == b""
    assert gzip.GzipFile(fileobj=io.BytesIO(stored_gzip(data))).read() == data
    blocks = max(1, -(-size // BLOCK_SIZE))
    assert len(stored_zlib(data)) == size + 5 * blocks + 6
    assert len(stored_gzip(data)) == size + 5 * blocks + 18


def test_the_bytes_are_written_by_the_standard() -> None:
    assert stored_zlib(b"") == bytes.fromhex("7801 010000ffff 00000001")
    assert stored_zlib(b"abc") == bytes.fromhex("7801 010300fcff 616263 024d0127")
    assert stored_gzip(b"abc") == bytes.fromhex("1f8b08000000000000ff 010300fcff 616263 c2412435 03000000")


def test_the_header_holds_no_time_no_name_and_no_system() -> None:
    assert stored_gzip(b"x")[:10] == bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])


def test_large_content_has_the_digest_it_had_when_this_was_written() -> None:
    digest = hashlib.sha256(stored_gzip(b"trainwreck" * 20000)).hexdigest()
    assert digest == "fecd53f6ec4e48cc6e61a3fe156c97580eec6602b6a264bfaed6df30128122bd"
