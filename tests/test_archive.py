import gzip
import hashlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.submission.archive import deterministic_tar_gz

PINNED = "43d02f242f79c4841f93b96946bd10d9c74fb3628efa28eb3699acd657f3e548"
LONG = "runs/" + "a" * 90 + "/" + "b" * 180 + "/metrics.log"
PARTS = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=["Cs"]), min_size=1).filter(
    lambda part: part not in (".", "..")
)


def test_the_bytes_are_pinned() -> None:
    data = deterministic_tar_gz({LONG: b"long", "\u00e9.txt": b"accent", "manifest.json": b"{}\n"})
    assert hashlib.sha256(data).hexdigest() == PINNED


def test_members_are_sorted_and_carry_nothing_of_this_machine() -> None:
    data = deterministic_tar_gz({"b": b"2", "a/c": b"1", LONG: b"3"})
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == ["a/c", "b", LONG]
        for member in members:
            assert member.isreg() and member.mode == 0o644 and member.mtime == 0
            assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
            assert not set(member.pax_headers) - {"path"}


@given(st.dictionaries(st.lists(PARTS, min_size=1, max_size=4).map("/".join), st.binary(), max_size=5))
def test_everything_comes_back(members: dict[str, bytes]) -> None:
    data = deterministic_tar_gz(members)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(data)), mode="r:", encoding="utf-8") as tar:
        back = {}
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            back[member.name] = file.read()
    assert back == members


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../up", "a/../b", "a//b", "./a", "a/", "a\\b", "a\0b"])
def test_a_name_that_would_unpack_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a plain path"):
        deterministic_tar_gz({name: b""})
