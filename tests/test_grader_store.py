from pathlib import Path

import pytest

from grader.replay.folder_lock import locked
from grader.replay.replay import Replay
from grader.replay.cache import Cache, default_folder
from harness.files import scratch_path

KEY = "ab" * 32


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path / "memory", Replay)
    assert store.get(KEY) is None
    replay = Replay(status="RE", message="naïve\nline", log='{"loss": "NaN"}\n')
    store.put(KEY, replay)
    assert store.get(KEY) == replay
    assert store.get("cd" * 32) is None


@pytest.mark.parametrize("damage", [b"", b"x", b"0" * 64 + b"\n{}"])
def test_an_entry_that_is_damaged_is_as_good_as_none(damage: bytes, tmp_path: Path) -> None:
    store = Store(tmp_path, Replay)
    store.put(KEY, Replay(status="OK"))
    (path,) = tmp_path.rglob("*.json")
    whole = path.read_bytes()
    for data in (damage, whole[:-1], whole.replace(b"OK", b"RE"), whole + b" "):
        path.write_bytes(data)
        assert store.get(KEY) is None
    store.put(KEY, Replay(status="OK"))
    assert path.read_bytes() == whole


def test_its_place_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAINWRECK_REPLAYS", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("TRAINWRECK_REPLAYS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_folder() == Path("/cache/trainwreck/replays")


def test_what_a_killed_process_left_goes_with_the_next_record(tmp_path: Path) -> None:
    store = Store(tmp_path, Replay)
    store.put(KEY, Replay(status="OK"))
    (entry,) = tmp_path.rglob("*.json")
    mine = [entry.with_name(name) for name in (".notes.txt.0123abcd", f".{entry.name}.swp", "0123abcd")]
    left = [scratch_path(entry), scratch_path(tmp_path / "cd" / f"{'cd' * 32}.json")]
    (tmp_path / "cd").mkdir()
    for path in (*mine, *left):
        path.write_bytes(b"half")
    store.put("ef" * 32, Replay(status="OK"))
    assert all(path.exists() for path in left), "this one has looked before it wrote its first record"
    with locked(tmp_path, shared=True):  # another is writing right now: it may be his
        Store(tmp_path, Replay).put("ef" * 32, Replay(status="OK"))
    assert all(path.exists() for path in left)
    Store(tmp_path, Replay).put("ef" * 32, Replay(status="OK"))
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in mine)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / KEY[:2]).touch()
    assert Store(tmp_path, Replay).get(KEY) is None
    with pytest.raises(OSError, match=f"/{KEY[:2]}"):
        Store(tmp_path, Replay).put(KEY, Replay(status="OK"))
    other = "cd" * 32
    entry = tmp_path / other[:2] / f"{other}.json"
    (entry / "mine").mkdir(parents=True)
    assert Store(tmp_path, Replay).get(other) is None
    with pytest.raises(IsADirectoryError) as caught:
        Store(tmp_path, Replay).put(other, Replay(status="OK"))
    assert caught.value.filename == str(entry)
    assert [path.name for path in entry.parent.iterdir()] == [entry.name]
