import os
from pathlib import Path

from memories import A_DAY, key, numbers_in, remember

from grader.replay.folder_lock import locked
from grader.replay.memory.entries import are_ours, entries_in, remove
from grader.replay.memory.kinds import KINDS, REPLAYS, SCORES
from harness.files import scratch_path


def test_the_entries_of_every_kind_are_found_with_size_and_last_use(tmp_path: Path) -> None:
    for number, kind in enumerate(KINDS):
        path = remember(tmp_path, number, kind=kind, days=number)
        (entry,) = [entry for entry in entries_in(tmp_path) if entry.path == path]
        assert (entry.kind, entry.bytes, entry.used) == (kind, path.stat().st_size, path.stat().st_mtime)
    assert len(entries_in(tmp_path)) == len(KINDS)
    assert entries_in(tmp_path / "nothing") == []


def test_nothing_else_is_taken_for_an_entry(tmp_path: Path) -> None:
    entry = remember(tmp_path, 1)
    content = entry.read_bytes()
    others = [
        entry.with_name("notes.json"),
        entry.with_name(f"{key(2)}.json"),  # the folder of another
        entry.with_name(f"{key(1)}.json.bak"),
        scratch_path(entry),  # half-written
        tmp_path / f"{key(1)}.json",
        tmp_path / "mine" / entry.parent.name / entry.name,
        tmp_path / "reports" / "index.html",
    ]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / key(3)[:2] / f"{key(3)}.json").mkdir(parents=True)
    behind = tmp_path / "mine" / "behind" / f"{key(4)}.json"
    behind.parent.mkdir()
    behind.write_bytes(content)
    (tmp_path / key(4)[:2]).symlink_to(behind.parent)
    (tmp_path / key(5)[:2]).mkdir()
    (tmp_path / key(5)[:2] / f"{key(5)}.json").symlink_to(entry)
    assert [found.path for found in entries_in(tmp_path)] == [entry]


def test_whose_they_are_is_told_by_how_one_begins(tmp_path: Path) -> None:
    for number in (1, 2):
        remember(tmp_path, number)
    first, second = entries_in(tmp_path)
    first.path.write_bytes(b'{"another": "program"}')
    assert not are_ours([first])
    assert are_ours([first, second])
    second.path.write_bytes(second.path.read_bytes()[:-1])
    assert are_ours([first, second]), "damaged, but ours"
    second.path.unlink()
    assert not are_ours([first, second])


def test_one_that_was_used_since_it_was_found_stays(tmp_path: Path) -> None:
    for number in range(4):
        remember(tmp_path, number, days=3)
    found = entries_in(tmp_path)
    os.utime(found[0].path, (A_DAY, A_DAY))
    remember(tmp_path, 1, days=3)  # written anew
    found[2].path.unlink()
    done = remove(tmp_path, found, wait=False)
    assert ([entry.path for entry in done.removed], done.problems) == ([found[3].path], ())
    assert numbers_in(tmp_path) == [0, 1]


def test_what_cannot_be_removed_is_told_and_the_others_go(tmp_path: Path) -> None:
    for number in (1, 2):
        remember(tmp_path, number)
    found = entries_in(tmp_path)
    found[0].path.unlink()
    found[0].path.parent.rmdir()
    found[0].path.parent.write_bytes(b"no folder")
    done = remove(tmp_path, found, wait=False)
    assert [entry.path for entry in done.removed] == [found[1].path]
    assert [problem.filename for problem in done.problems] == [str(found[0].path)]


def test_while_somebody_writes_nothing_of_that_kind_is_removed(tmp_path: Path) -> None:
    for number, kind in enumerate((REPLAYS, SCORES)):
        remember(tmp_path, number, kind=kind)
    with locked(tmp_path / SCORES.folder, shared=True):
        done = remove(tmp_path, entries_in(tmp_path), wait=False)
    assert [entry.kind for entry in done.removed] == [REPLAYS]
    assert numbers_in(tmp_path) == [1]
