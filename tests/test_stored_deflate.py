import gzip
import hashlib
import io
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.run.stored_deflate import BLOCK_SIZE, stored_gzip, stored_zlib

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
