"""The cache of replays: records do not change, damage is noticed, and unused records are deleted."""

import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.replay.replay import Replay
from grader.replay.replays import Cache, trim
from harness.files import scratch_path

KEY = "ab" * 32
DAY = 86_400.0


def key(number: int) -> str:
    return f"{number:02x}" * 32


def remember(folder: Path, number: int, *, days: float = 0.0) -> Path:
    """Store a record that was last used this many days ago, and return its file."""
    Cache(folder, Replay).put(key(number), Replay(status="OK", log="x" * 1000))
    path = folder / key(number)[:2] / f"{key(number)}.json"
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\n{}"])
def test_a_record_comes_back_as_it_was_and_a_damaged_one_is_missing(damage: bytes, tmp_path: Path) -> None:
    cache, replay = (Cache(tmp_path, Replay), Replay(status="OK", message="naïve\nline", log='{"loss": "NaN"}\n'))
    cache.put(KEY, replay)
    assert (cache.get(KEY), cache.get("cd" * 32)) == (replay, None)
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    for data in (damage, whole[:-1], whole.replace(b"OK", b"RE"), whole + b" "):
        path.write_bytes(data)
        assert cache.get(KEY) is None
    cache.put(KEY, replay)
    assert path.read_bytes() == whole


def test_what_was_not_used_for_long_goes_and_a_use_counts(tmp_path: Path) -> None:
    paths = [remember(tmp_path / folder, number, days=70 - 5 * number)
             for number, folder in enumerate(("", "", "trials", "no-sandbox", "no-sandbox/examined"))]  # fmt: skip
    mine = tmp_path / "ab" / "notes.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    Cache(tmp_path, Replay).get(key(0))  # this uses the oldest record again
    assert trim(tmp_path, days=57)[0] == 2
    assert [path.exists() for path in paths] == [True, False, False, True, True]
    assert mine.exists()
    assert trim(tmp_path / "nowhere") == (0, 0)


def test_clearing_deletes_entries_and_what_is_half_written_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path))
    entry = remember(tmp_path, 1)
    link = entry.with_name(f"{key(1)[:2]}{'0' * 62}.json")
    link.symlink_to(entry)
    mine = [entry.with_name(name) for name in (".notes.txt.0123abcd", f".{entry.name}.swp", "notes.json")]
    old, new = scratch_path(entry), scratch_path(entry)  # another grader may be writing the new file now
    for path in (*mine, old, new):
        path.write_bytes(b"mine or half")
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    assert "Deleted 2 entries" in CliRunner().invoke(cli, ["clear-cache"]).output
    assert sorted(entry.parent.iterdir()) == sorted([link, new, *mine])
