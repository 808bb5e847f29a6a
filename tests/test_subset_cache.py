from pathlib import Path

import numpy as np

from harness.data.image_sets import Dataset, Split
from harness.data.subset_cache import read_cached, write_cached

_RANDOM = np.random.RandomState(0)
_SPLIT = Split(_RANDOM.randint(0, 256, (5, 1, 3, 3)).astype(np.uint8), np.arange(5, dtype=np.int64))
_DATASET = Dataset.of("some", _SPLIT, _SPLIT)


def test_what_was_written_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kept.npz"
    write_cached(path, _DATASET)
    known = read_cached(path, "some")
    assert known is not None
    assert known.digest == _DATASET.digest
    assert (known.train.images == _SPLIT.images).all()
    assert known.train.images.flags.writeable
    assert list(path.parent.iterdir()) == [path]


def test_nothing_there_is_nothing_known(tmp_path: Path) -> None:
    assert read_cached(tmp_path / "kept.npz", "some") is None
    assert read_cached(tmp_path, "some") is None


def test_no_altered_byte_changes_the_data_or_raises(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    write_cached(path, _DATASET)
    whole = path.read_bytes()
    for position in range(len(whole)):
        altered = bytearray(whole)
        altered[position] ^= 1
        path.write_bytes(altered)
        known = read_cached(path, "some")
        # Some bytes of a zip mean nothing, such as its time stamps.
        assert known is None or known.digest == _DATASET.digest


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    write_cached(path, _DATASET)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert read_cached(path, "some") is None


def test_other_kinds_of_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    for content in (b"text", b"\x80\x04K\x01.", b"\x93NUMPY\x01\x00v\x00"):
        path.write_bytes(content)
        assert read_cached(path, "some") is None
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    assert read_cached(path, "some") is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    write_cached(in_the_way / "kept.npz", _DATASET)
    assert in_the_way.read_text() == "mine"
