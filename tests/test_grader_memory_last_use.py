import os
import shutil
import time
from pathlib import Path

import pytest
from memories import A_DAY, key, remember

from grader.replay.memory.last_use import was_used
from grader.replay.replay import Replay
from grader.replay.cache import Cache


def age(path: Path) -> float:
    """Return the days since the last use."""
    return (time.time() - path.stat().st_mtime) / A_DAY


def copied(path: Path, memory: Path) -> Path:
    """Copy an entry into another memory, in which this process has used none."""
    place = memory / path.parent.name / path.name
    place.parent.mkdir(parents=True)
    return Path(shutil.copyfile(path, place))


@pytest.mark.parametrize("days", [2, 20_000, -2, -80_000])
def test_to_read_an_entry_is_to_use_it_whatever_clock_set_its_time(days: float, tmp_path: Path) -> None:
    path = remember(tmp_path, 1, days=days)
    content = path.read_bytes()
    assert Store(tmp_path, Replay).get(key(1)) is not None
    assert abs(age(path)) < 1
    assert path.read_bytes() == content


def test_its_time_is_set_once_a_day_at_most(tmp_path: Path) -> None:
    path = remember(tmp_path, 1, days=0.5)
    before = path.stat().st_mtime_ns
    Store(tmp_path, Replay).get(key(1))
    assert path.stat().st_mtime_ns == before


def test_a_damaged_entry_is_not_used_by_reading_it(tmp_path: Path) -> None:
    entry = copied(remember(tmp_path / "one", 1), tmp_path / "two")
    entry.write_bytes(entry.read_bytes()[:-1])
    os.utime(entry, (0, 0))
    assert Store(tmp_path / "two", Replay).get(key(1)) is None
    assert entry.stat().st_mtime == 0
    assert not was_used(entry)


def test_what_was_read_or_written_here_is_known_by_its_place(tmp_path: Path) -> None:
    written = remember(tmp_path / "one", 1)
    assert was_used(written)
    read = copied(written, tmp_path / "two")
    assert not was_used(read)
    Store(tmp_path / "two", Replay).get(key(1))
    assert was_used(read)
