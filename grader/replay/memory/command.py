"""`grader cache`: shows, verifies and clears what is remembered."""

import sys
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import track
from rich.table import Table

from grader.replay.memory.bound import LIMIT_VARIABLE, chosen_limit
from grader.replay.memory.entries import Entry, are_ours, entries_in, remove
from grader.replay.memory.kinds import KINDS
from grader.replay.memory.last_use import A_DAY
from harness.errors import Stopped, UserError

_AGAIN = "What is missing is made again when it is needed."


def show_memory(memory: Path) -> None:
    """Print where the memory is, and of each kind how many entries there are, how large, and when they were used."""
    entries, limit = _entries(memory), chosen_limit()
    console = Console()
    if not entries:
        _say(console, f"Nothing is remembered in {memory}.")
        return
    _say(console, f"Remembered in {memory}")
    table = Table()
    table.add_column("")
    for name in ("entries", "size", "oldest use", "newest use"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in KINDS:
        if of_kind := [entry for entry in entries if entry.kind == kind]:
            table.add_row(kind.title, *_cells(of_kind))
    table.add_section()
    table.add_row("all", *_cells(entries))
    console.print(table)
    _say(
        console,
        f"{_size(entries)} of {decimal(limit)}: above that, what was used longest ago goes at the end of a run."
        f" {LIMIT_VARIABLE} sets another limit (500MB, 2.5GB).",
    )


def _cells(entries: Sequence[Entry]) -> tuple[str, ...]:
    used = sorted(entry.used for entry in entries)
    return f"{len(entries):,}", _size(entries), _day(used[0]), _day(used[-1])


def verify_memory(memory: Path, *, remove_damaged: bool) -> int:
    """Print each entry that cannot be used, remove these if asked to, and return 1 where there is one, else 0.

    Raises `UserError` where nothing there is the grader's own, and so nothing may be removed.
    """
    from grader.replay.memory.verify import damaged

    entries = _entries(memory)
    if remove_damaged:
        _refuse_others(memory, entries)
    console, errors, found = Console(), Console(stderr=True), []
    looked_at = track(entries, "verifying", console=errors, transient=True, disable=not errors.is_terminal)
    for entry, problem in damaged(looked_at):
        found.append(entry)
        _say(console, f"{entry.path}: {problem}")
    if not found:
        _say(console, f"{_count(entries)}: all are whole.")
        return 0
    _say(console, f"Of no use: {_count(found)} of {len(entries):,}. {_AGAIN}")
    if remove_damaged:
        _remove(memory, found, console)
    else:
        _say(console, "Next: grader cache verify --remove")
    return 1


def clear_memory(memory: Path, *, older_than: int | None, yes: bool) -> None:
    """Delete what was last used more than `older_than` days ago, or everything, after asking.

    Raises `UserError` where nothing there is the grader's own, or where nobody can be asked; `Stopped` for a no.
    """
    entries = _entries(memory)
    _refuse_others(memory, entries)
    if older_than is not None:
        moment = time.time() - older_than * A_DAY
        entries = [entry for entry in entries if entry.used < moment]
    console = Console()
    if not entries:
        _say(console, f"Nothing to delete in {memory}.")
        return
    what = f"{_count(entries)} in {memory}"
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"Deleting {what} needs a yes, and there is no terminal to ask at: give --yes.")
        if not click.confirm(f"Delete {what}? {_AGAIN}"):
            raise Stopped("Nothing was deleted.")
    _remove(memory, entries, console)


def _entries(memory: Path) -> list[Entry]:
    """Return the entries. Raises `UserError` where a folder holds other things alone."""
    entries = entries_in(memory)
    if not entries and memory.exists() and any(path.is_file() for path in memory.rglob("*")):
        raise UserError(f"{memory} is no memory of the grader's: name the folder with --replays.")
    return entries


def _refuse_others(memory: Path, entries: Sequence[Entry]) -> None:
    if entries and not are_ours(entries):
        raise UserError(
            f"No file in {memory} begins as the grader's do, so nothing was deleted: if it is the grader's, delete it"
            " by hand, else name another folder with --replays."
        )


def _remove(memory: Path, entries: Iterable[Entry], console: Console) -> None:
    removal = remove(memory, entries, wait=True)
    _say(console, f"Deleted: {_count(removal.removed)}.")
    if removal.problems:
        raise removal.problems[0]


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _count(entries: Sequence[Entry]) -> str:
    return f"{len(entries):,} {'entry' if len(entries) == 1 else 'entries'} ({_size(entries)})"


def _size(entries: Iterable[Entry]) -> str:
    return decimal(sum(entry.bytes for entry in entries))


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).date().isoformat()
    except (ValueError, OverflowError, OSError):  # a clock was far out
        return "?"
