"""The cache of replays: records come back as they were, damage is noticed, the oldest go first."""

import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.replay.cache import LIMIT_VARIABLE, Cache, clear, entries, size_limit, trim
from grader.replay.replay import Replay
from harness.errors import UserError
from harness.files import scratch_path

KEY = "ab" * 32
DAY = 86_400.0


def key(number: int) -> str:
    return f"{number:02x}" * 32


def remember(folder: Path, number: int, *, days: float = 0.0) -> Path:
    """Put a record that was last used so many days ago; return its file."""
    Cache(folder, Replay).put(key(number), Replay(status="OK", log="x" * 1000))
    path = folder / key(number)[:2] / f"{key(number)}.json"
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\n{}"])
def test_a_record_comes_back_as_it_was_and_a_damaged_one_is_missing(damage: bytes, tmp_path: Path) -> None:
    cache, replay = (
        Cache(tmp_path, Replay),
        Replay(status="OK", message="naïve\nline", log='{"loss": "NaN"}\n'),
    )
    cache.put(KEY, replay)
    assert (cache.get(KEY), cache.get("cd" * 32)) == (replay, None)
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    for data in (damage, whole[:-1], whole.replace(b"OK", b"RE"), whole + b" "):
        path.write_bytes(data)
        assert cache.get(KEY) is None
    cache.put(KEY, replay)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2 * 10**9),
        ("500MB", 500 * 10**6),
        (" 2.5 gb ", 2_500_000_000),
        ("much", None),
        ("-1GB", None),
        ("٣GB", None),
    ],
)
def test_its_limit_can_be_chosen(text: str, size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    if size is None:
        with pytest.raises(UserError, match=LIMIT_VARIABLE):
            size_limit()
    else:
        assert size_limit() == size


def test_above_the_limit_the_oldest_go_and_a_use_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = [remember(tmp_path / folder, number, days=30 - number)
             for number, folder in enumerate(("", "", "trials", "no-sandbox", "no-sandbox/examined"))]  # fmt: skip
    size = paths[0].stat().st_size
    mine = tmp_path / "ab" / "notes.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    Cache(tmp_path, Replay).get(key(0))  # the oldest is used again
    monkeypatch.setenv(LIMIT_VARIABLE, f"{(3 * size + 10) / 10**6:.6f}MB")
    trim(tmp_path)
    assert [path.exists() for path in paths] == [True, False, False, True, True]
    assert mine.exists()
    trim(tmp_path / "nowhere")


def test_what_killed_graders_left_half_written_goes(tmp_path: Path) -> None:
    entry = remember(tmp_path, 1)
    mine = [entry.with_name(name) for name in (".notes.txt.0123abcd", f".{entry.name}.swp", "0123abcd")]
    left = scratch_path(entry)
    for path in (*mine, left):
        path.write_bytes(b"half")
    trim(tmp_path)
    assert left.exists()  # another grader may write it right now
    os.utime(left, (time.time() - 2 * DAY,) * 2)
    trim(tmp_path)
    assert not left.exists()
    assert all(path.exists() for path in (*mine, entry))


def test_clearing_deletes_entries_only(tmp_path: Path) -> None:
    entry = remember(tmp_path / "mine", 1)
    link = entry.with_name(f"{key(1)[:2]}{'0' * 62}.json")
    link.symlink_to(entry)
    (entry.parent / "notes.json").write_text("mine")
    assert [item.path for item in clear(tmp_path / "mine")] == [entry]
    assert sorted(path.name for path in entry.parent.iterdir()) == sorted([link.name, "notes.json"])


def test_the_commands_show_and_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path))
    remember(tmp_path, 1)
    run = CliRunner().invoke
    shown = run(cli, ["cache", "show"])
    assert "1 entries" in shown.output
    assert "Deleted 1 entries" in run(cli, ["cache", "clear"]).output
    assert entries(tmp_path) == []
