import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from memories import key, numbers_in, remember

from grader.cli import cli
from grader.replay.folder_lock import locked
from grader.replay.memory.bound import DEFAULT_LIMIT, LIMIT_VARIABLE, bounded, chosen_limit, drop_oldest
from grader.replay.memory.entries import entries_in
from grader.replay.memory.kinds import REPLAYS, SCORES
from grader.replay.replay import Replay
from grader.replay.cache import Cache
from harness.errors import UserError


def nothing(path: Path) -> bool:
    return False


def bytes_in(memory: Path) -> int:
    return sum(entry.bytes for entry in entries_in(memory))


def test_what_was_used_longest_ago_goes_first_until_the_rest_fits(tmp_path: Path) -> None:
    order = random.Random(3).sample(range(8), 8)
    sizes = []
    for days, number in enumerate(order):
        kind = SCORES if number % 2 else REPLAYS
        sizes.append(remember(tmp_path, number, days=days, kind=kind, size=100 * number).stat().st_size)
    for left, room in ((8, 0), (7, sizes[7] - 1), (4, sizes[4] - 1), (3, 0), (0, sizes[0] - 1)):
        drop_oldest(tmp_path, sum(sizes[:left]) + room, keep=nothing)
        assert numbers_in(tmp_path) == sorted(order[:left])


def test_what_is_to_be_kept_stays_however_old_it_is(tmp_path: Path) -> None:
    paths = {number: remember(tmp_path, number, days=number) for number in range(4)}
    drop_oldest(tmp_path, 0, keep={paths[3], paths[1]}.__contains__)
    assert numbers_in(tmp_path) == [1, 3]


def test_uses_that_lie_ahead_go_first_in_their_order(tmp_path: Path) -> None:
    for number, days in enumerate((5, -90_000, 1, -70_000)):
        remember(tmp_path, number, days=days)
    size = bytes_in(tmp_path) // 4
    left = []
    for most in (3, 2, 1):
        drop_oldest(tmp_path, most * size, keep=nothing)
        left.append(numbers_in(tmp_path))
    assert left == [[0, 1, 2], [0, 2], [2]]


def test_under_a_clock_that_went_back_the_order_is_still_that_of_use(tmp_path: Path) -> None:
    # The processes of the suite cannot set the clock; all files may be moved ahead instead.
    ahead = 20_000
    remember(tmp_path, 0, days=0)  # written since the clock went back
    for number in (1, 2, 3):
        remember(tmp_path, number, days=number - ahead)
    size = bytes_in(tmp_path) // 4
    drop_oldest(tmp_path, 2 * size, keep=nothing)
    assert numbers_in(tmp_path) == [0, 1]


def test_a_kind_that_is_being_written_is_left_to_the_next_run(tmp_path: Path) -> None:
    remember(tmp_path, 1, days=9)
    remember(tmp_path, 2, days=1, kind=SCORES)
    with locked(tmp_path, shared=True):
        drop_oldest(tmp_path, 0, keep=nothing)
        assert numbers_in(tmp_path) == [1]
    drop_oldest(tmp_path, 0, keep=nothing)
    assert numbers_in(tmp_path) == []


@pytest.mark.parametrize(
    ("chosen", "limit"),
    [
        ("", DEFAULT_LIMIT), ("2GB", 2 * 10**9), ("500MB", 5 * 10**8), ("2.5 gb", 25 * 10**8), ("1TB", 10**12),
        (" 0MB ", 0),
    ],
)  # fmt: skip
def test_the_limit_can_be_chosen(chosen: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, chosen)
    assert chosen_limit() == limit


@pytest.mark.parametrize(
    "chosen", ["lots", "2,5 GB", "-1GB", "10", "nan", "2GB please", "9" * 5000 + "GB", "\x1b[2J"]
)
def test_a_limit_that_is_no_size_is_told_before_any_work(
    chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, chosen)
    (tmp_path / "ada_huge_lr.tar.gz").touch()
    words = [
        "score",
        str(tmp_path),
        "--out",
        str(tmp_path / "reports"),
        "--replays",
        str(tmp_path / "memory"),
    ]
    for command in (words, ["cache", "show"]):
        refused = CliRunner().invoke(cli, command).exception
        assert isinstance(refused, UserError)
        assert str(refused).startswith(f"{LIMIT_VARIABLE} is {chosen[:40]!r}, which is no size")
    assert [path.name for path in tmp_path.iterdir()] == ["ada_huge_lr.tar.gz"]


def others_memory(folder: Path) -> Path:
    """Return a memory that nobody here has used."""
    for number in range(6):
        remember(folder / "made", number, days=number)
    return shutil.copytree(folder / "made", folder / "memory")


def test_a_run_ends_within_the_limit_and_keeps_what_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = others_memory(tmp_path)
    size = bytes_in(memory) // 6
    monkeypatch.setenv(LIMIT_VARIABLE, f"{4 * size / 10**6:.6f}MB")
    with bounded(memory):
        Store(memory, Replay).get(key(5))  # the oldest
        remember(memory, 6)
        assert numbers_in(memory) == [*range(7)], "nothing goes before the end"
    assert numbers_in(memory) == [0, 1, 5, 6]
    monkeypatch.setenv(LIMIT_VARIABLE, "0MB")
    with bounded(memory):
        pass
    assert numbers_in(memory) == [5, 6], "all that this process has ever used"


def test_a_run_that_fails_ends_within_the_limit_too_and_with_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "0MB")
    memory = others_memory(tmp_path)
    with pytest.raises(ZeroDivisionError), bounded(memory):
        raise ZeroDivisionError
    assert numbers_in(memory) == []
    (tmp_path / "file").touch()
    for place in (tmp_path / "nothing", tmp_path / "file"):
        with bounded(place):
            pass
    assert not (tmp_path / "nothing").exists()


BUSY = """
import sys
from pathlib import Path
from grader.replay.memory.bound import bounded
from grader.replay.replay import Replay
from grader.replay.cache import Cache
memory, first = Path(sys.argv[1]), int(sys.argv[2])
for run in range(12):
    with bounded(memory):
        store = Store(memory, Replay)
        for number in range(20):
            key = f"{(first + number + run) % 256:02x}" * 32
            replay = Replay(status="OK", message=key * 200)
            if store.get(key) not in (None, replay):
                raise SystemExit("not what was kept")
            store.put(key, replay)
"""


def test_several_graders_write_and_sweep_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, LIMIT_VARIABLE: "0.1MB"}
    running = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", BUSY, str(tmp_path), str(first)],
            env=environment,
            stderr=subprocess.PIPE,
        )
        for first in (0, 10, 128)
    ]
    for process in running:
        _, said = process.communicate()
        assert (process.returncode, said) == (0, b"")
    store = Store(tmp_path, Replay)
    left = entries_in(tmp_path)
    assert left
    assert all(store.get(entry.path.stem) is not None for entry in left)
    files = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {entry.path for entry in left}, "nothing half-written"
    # What was there before, and was used by none of them, is the first to go.
    remember(tmp_path, 255, days=2)
    subprocess.run([sys.executable, "-P", "-c", BUSY, str(tmp_path), "0"], env=environment, check=True)
    assert 255 not in numbers_in(tmp_path)
