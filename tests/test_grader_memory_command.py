"""`grader cache`: what it prints, what it deletes, what it refuses, and that it asks before it deletes."""

import datetime
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from commands import command_environment, run_command, sentence, snapshot
from faults.held import Absent
from faults.mounts import Mounted
from memories import key, numbers_in, remember

from grader.cli import cli
from grader.replay.memory import command
from grader.replay.memory.kinds import KINDS, REPLAYS, SCORES
from harness.errors import UserError
from harness.files import scratch_path

GRADER = (sys.executable, "-P", "-m", "grader")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Three entries of two kinds, used today, ten days and a hundred days ago."""
    folder = tmp_path / "memory"
    for number, days, kind in ((1, 0, REPLAYS), (2, 10, SCORES), (3, 100, REPLAYS)):
        remember(folder, number, days=days, kind=kind)
    return folder


def cache(*words: str | Path | int, **variables: str) -> Result:
    """Run `grader cache` in this process, which is no terminal."""
    return CliRunner().invoke(cli, ["cache", *map(str, words)], env={"COLUMNS": "120", **variables})


def refusal(*words: str | Path) -> str:
    """Return the sentence with which it refused."""
    refused = cache(*words).exception
    assert isinstance(refused, UserError)
    return str(refused)


def test_it_shows_every_kind_with_size_and_use(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    assert cache("show", "--replays", memory).stdout == f"Nothing is remembered in {memory}.\n"
    assert not memory.exists()
    for number, kind in enumerate(KINDS):
        remember(memory, number, kind=kind)
    os.utime(remember(memory, 50), (86_400 * 365, 86_400 * 365))
    shown = cache("show", TRAINWRECK_REPLAYS=str(memory), TRAINWRECK_REPLAYS_LIMIT="1.5GB")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0] == f"Remembered in {memory}"
    rows = {cells[1]: cells[2:-1] for line in lines if len(cells := [*map(str.strip, line.split("│"))]) == 7}
    assert list(rows) == [*(kind.title for kind in KINDS), "all"]
    size = sum(path.stat().st_size for path in memory.rglob("*.json"))
    newest = datetime.datetime.fromtimestamp(max(path.stat().st_mtime for path in memory.rglob("*.json")))
    assert rows["all"] == [str(len(KINDS) + 1), f"{size / 1000:.1f} kB", "1971-01-01", f"{newest:%Y-%m-%d}"]
    assert (rows["replays"][0], rows["scores"][0]) == ("2", "1")
    assert lines[-1].startswith(f"{size / 1000:.1f} kB of 1.5 GB: ")


def test_a_day_that_no_calendar_has_is_shown_as_none() -> None:
    assert [command._day(seconds) for seconds in (2.0**62, -(2.0**62))] == ["?", "?"]


def test_it_verifies_and_removes_what_is_of_no_use(memory: Path) -> None:
    verify = ("verify", "--replays", memory)
    whole = cache(*verify)
    assert whole.exit_code == 0
    assert whole.stdout.startswith("3 entries (")
    assert whole.stdout.endswith("): all are whole.\n")
    damaged = memory / key(3)[:2] / f"{key(3)}.json"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    before = snapshot(memory)
    found = cache(*verify)
    assert (found.exit_code, found.stderr) == (1, "")
    lines = found.stdout.splitlines()
    assert lines[0] == f"{damaged}: its digest is another"
    assert lines[1].startswith("Of no use: 1 entry (")
    assert lines[2] == "Next: grader cache verify --remove"
    assert snapshot(memory) == before
    removed = cache(*verify, "--remove")
    assert (removed.exit_code, removed.stderr) == (1, "")
    assert removed.stdout.splitlines()[2].startswith("Deleted: 1 entry (")
    del before[damaged.relative_to(memory).as_posix()]
    assert snapshot(memory) == before
    assert cache(*verify).exit_code == 0


def strangers(memory: Path) -> dict[str, bytes]:
    """Put somebody's own files there, and return them by their names."""
    shelf = memory / key(1)[:2]
    (memory / "mine").mkdir()
    paths = (
        memory / "notes.txt", shelf / "notes.json", shelf / f"{key(2)}.json", memory / "mine" / "a.json",
        memory / "graded" / "marks.csv", scratch_path(shelf / f"{key(1)}.json"),
    )  # fmt: skip
    for path in paths:
        path.write_bytes(b"mine")
    return {path.relative_to(memory).as_posix(): b"mine" for path in paths}


def test_it_clears_what_is_old_and_nothing_of_anybody_elses(memory: Path) -> None:
    mine = strangers(memory)
    clear = ("clear", "--yes", "--replays", memory)
    assert cache(*clear, "--older-than", 101).stdout == f"Nothing to delete in {memory}.\n"
    for days, left in ((99, [1, 2]), (9, [1])):
        assert cache(*clear, "--older-than", days).stdout.startswith("Deleted: 1 entry (")
        assert numbers_in(memory) == left
    assert cache(*clear).stdout.startswith("Deleted: 1 entry (")
    assert snapshot(memory) == mine
    assert "is no memory of the grader's" in refusal(*clear)
    assert snapshot(memory) == mine


def test_a_folder_that_is_no_memory_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    (folder / "letters").mkdir(parents=True)
    (folder / "letters" / "one.txt").write_text("Dear Ada")
    for words in (("show",), ("verify",), ("verify", "--remove"), ("clear", "--yes")):
        said = refusal(*words, "--replays", folder)
        assert said == f"{folder} is no memory of the grader's: name the folder with --replays."
    # Another program's, which names its files alike.
    other = tmp_path / "another" / key(1)[:2] / f"{key(1)}.json"
    other.parent.mkdir(parents=True)
    other.write_text('{"made by": "another"}')
    for words in (("verify", "--remove"), ("clear", "--yes")):
        said = refusal(*words, "--replays", tmp_path / "another")
        assert said.startswith(f"No file in {tmp_path / 'another'} begins as the grader's do")
    assert other.read_text() == '{"made by": "another"}'
    assert snapshot(folder) == {"letters/one.txt": b"Dear Ada"}


def at_a_terminal(memory: Path, answer: bytes) -> tuple[int, str]:
    """Clear the memory, and return the exit status and all that was said."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*GRADER, "cache", "clear", "--replays", str(memory)],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=command_environment(),
    )  # fmt: skip
    os.write(ours, answer)
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    return process.returncode, said


def test_it_asks_before_it_deletes(memory: Path) -> None:
    said = refusal("clear", "--replays", memory)
    assert said.startswith("Deleting 3 entries (")
    assert said.endswith("needs a yes, and there is no terminal to ask at: give --yes.")
    status, said = at_a_terminal(memory, b"\n")
    assert status == 2
    assert f" in {memory}? " in said
    assert said.endswith("Nothing was deleted.\n")
    assert numbers_in(memory) == [1, 2, 3]
    status, said = at_a_terminal(memory, b"y\n")
    assert status == 0
    assert "Deleted: 3 entries (" in said
    assert numbers_in(memory) == []


def test_a_memory_that_cannot_be_written_to_is_verified_and_not_cleared(memory: Path, tmp_path: Path) -> None:
    try:
        with Mounted(memory, None) as disk:
            there = ("--replays", memory)
            program = (*disk.enter, *GRADER)
            verified = run_command("cache", "verify", *there, cwd=tmp_path, program=program)
            cleared = run_command("cache", "clear", "--yes", *there, cwd=tmp_path, program=program)
    except Absent as reason:
        pytest.skip(str(reason))
    assert (verified.returncode, verified.stderr) == (0, "")
    assert cleared.stdout.startswith("Deleted: 0 entries (")
    assert sentence(cleared).startswith(f"Read-only file system at {memory}/")
    assert numbers_in(memory) == [1, 2, 3]
