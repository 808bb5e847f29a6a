import gzip
import hashlib
from pathlib import Path

import pytest

from harness.data.data_files import IncompleteFilesError, check_digest, require_files, unpack
from harness.errors import UserError


def test_only_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    require_files("mnist", tmp_path, ["here"])
    with pytest.raises(IncompleteFilesError) as refusal:
        require_files("mnist", tmp_path, ["here", "first", "second"])
    assert f"{tmp_path}: fetch it with `make data DATASET=mnist`" in str(refusal.value)
    assert "put first, second there" in str(refusal.value)


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_a_digest_holds_or_names_the_file_that_the_user_has(algorithm: str, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"some")
    digest = hashlib.new(algorithm, b"some", usedforsecurity=False).hexdigest()
    shown = tmp_path / "data.gz"
    check_digest("mnist", file, digest, shown)
    file.write_bytes(b"other")
    with pytest.raises(UserError) as refusal:
        check_digest("mnist", file, digest, shown)
    assert str(refusal.value).startswith(
        f"{shown} is not the published file of mnist, its {algorithm.upper()} is"
    )
    assert "delete it" in str(refusal.value)


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "data.gz").write_bytes(gzip.compress(b"some", mtime=0))
    unpack("mnist", tmp_path / "data.gz", tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == b"some"


_PACKED = gzip.compress(bytes(range(256)) * 20, mtime=0)


@pytest.mark.parametrize(
    "content", [b"text", _PACKED[:-5], _PACKED[:40], _PACKED[:30] + b"\xff" * 20 + _PACKED[50:]]
)
def test_a_damaged_packed_file_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.gz").write_bytes(content)
    with pytest.raises(IncompleteFilesError, match=r"data\.gz is damaged .*delete it"):
        unpack("mnist", tmp_path / "data.gz", tmp_path / "data")
