"""Memories to look at: entries of every kind, of any size and age."""

import base64
import os
import time
from pathlib import Path

from grader.written.answers.examination import Examination

from grader.graded import Graded, row_without_checks
from grader.replay.memory.entries import entries_in
from grader.replay.memory.kinds import REPLAYS, Holds, Kind
from grader.replay.replay import Replay
from grader.replay.store import Store
from grader.score.canary_check import CanaryPassed
from grader.score.exhibits import Exhibits
from grader.score.verdict import Model
from grader.selfcheck.handed_in import HandedIn
from grader.selfcheck.trial import KeptOutcome

A_DAY = 86_400


def key(number: int) -> str:
    """Return the key of an entry: those of different numbers lie in different places."""
    return f"{number:02x}" * 32


def record(holds: Holds, size: int = 0) -> Model:
    """Return a record of this kind, with so many bytes of text in it."""
    filling = "x" * size
    if holds == "replay":
        return Replay(status="OK", message=filling)
    if holds == "examination":
        return Examination(checks={}, fault=filling)
    if holds == "score":
        return Graded(
            row=row_without_checks("ada_huge_lr", None, None, "rejected", filling),
            exhibits=Exhibits(submission="ada_huge_lr", broken_source=None, fixed_source=None, report=None),
        )
    if holds == "canary":
        return CanaryPassed(recipe=filling)
    if holds == "tarball":
        return HandedIn(tarball=base64.b64encode(filling.encode()))
    return KeptOutcome(outcome=filling)


def remember(memory: Path, number: int, *, days: float = 0, kind: Kind = REPLAYS, size: int = 1000) -> Path:
    """Keep a record that was last used so many days ago, and return its place."""
    folder = memory / kind.folder
    Store(folder, Model).put(key(number), record(kind.holds, size))
    path = folder / key(number)[:2] / f"{key(number)}.json"
    used = time.time() - days * A_DAY
    os.utime(path, (used, used))
    return path


def numbers_in(memory: Path) -> list[int]:
    """Return the numbers of the entries that are there."""
    return sorted(int(entry.path.name[:2], 16) for entry in entries_in(memory))
