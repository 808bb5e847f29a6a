from pathlib import Path

import pytest

from grader.replay import Replay
from grader.store import Store, default_store

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
    assert default_store() == tmp_path
    monkeypatch.delenv("TRAINWRECK_REPLAYS")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_store() == Path("/cache/trainwreck/replays")
