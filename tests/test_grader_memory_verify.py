import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from memories import key, remember

from grader.replay.memory.entries import entries_in
from grader.replay.memory.kinds import KINDS, SCORES
from grader.replay.memory.verify import damaged
from grader.replay.replay import Replay
from grader.replay.cache import Cache


def test_whole_entries_of_every_kind_are_whole_and_in_another_kinds_place_they_are_not(
    tmp_path: Path,
) -> None:
    for number, kind in enumerate(KINDS):
        remember(tmp_path, number, kind=kind)
    entries = entries_in(tmp_path)
    assert len(entries) == len(KINDS)
    assert list(damaged(entries)) == []
    remember(tmp_path, 99, kind=SCORES).replace(remember(tmp_path, 99))
    ((found, problem),) = damaged(entries_in(tmp_path))
    assert found.path.stem == key(99)
    assert "of another form" in problem


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(b""), "its digest is another"),
        (lambda path: path.write_bytes(bytes(500)), "its digest is another"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "its digest is another"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"OK", b"RE")), "its digest is another"),
        (lambda path: path.write_bytes(_signed(b'{"status": "fine"}')), "of another form"),
        (lambda path: path.write_bytes(_signed(b"[" * 100_000)), "of another form"),
    ],
)
def test_each_damaged_entry_is_told_and_is_none_to_the_store(
    damage: Callable[[Path], object], says: str, tmp_path: Path
) -> None:
    remember(tmp_path, 1)
    path = remember(tmp_path, 2)
    damage(path)
    ((found, problem),) = damaged(entries_in(tmp_path))
    assert found.path == path
    assert says in problem
    assert Store(tmp_path, Replay).get(key(2)) is None


def _signed(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_to_look_at_an_entry_is_no_use_of_it(tmp_path: Path) -> None:
    path = remember(tmp_path, 1, days=9, kind=SCORES)
    before = path.stat().st_mtime_ns
    assert list(damaged(entries_in(tmp_path))) == []
    assert path.stat().st_mtime_ns == before


def test_one_that_is_gone_or_cannot_be_read_ends_nothing(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        remember(tmp_path, number)
    entries = entries_in(tmp_path)
    entries[0].path.unlink()
    entries[1].path.unlink()
    entries[1].path.mkdir()
    assert [(found, problem) for found, problem in damaged(entries)] == [
        (entries[1], "it cannot be read (Is a directory)")
    ]
