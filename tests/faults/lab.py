"""A small class, its results without faults, and places in which the class can be scored during a fault."""

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from helpers.honest_class import HonestClass
from helpers.intake_archives import COMMANDS, manifest, packed, taken
from helpers.recorded_logs import recorded_evidence
from helpers.watched import Ended, Watched

from grader.replay.request import requests_of
from harness.recipes.catalogue import load_recipe

RECIPE = "huge_lr"
Files = dict[str, bytes]
Stamp = tuple[int, int, bytes]  # inode, time of the last change, content
_SECONDS = re.compile(rb'"seconds":[0-9.]+')
_SCRATCH = re.compile(r"\..+\.[0-9a-f]{8}", re.DOTALL)


class NotHeld(AssertionError):
    """The result of a fault is not the required result."""


class Absent(Exception):
    """This machine cannot cause the fault. The sentence gives the reason."""


def must(condition: bool, words: str) -> None:
    """Raise `NotHeld` with these words if the condition is False."""
    if not condition:
        raise NotHeld(words)


def content(folder: Path) -> Files:
    """Return every file in a folder and its subfolders, also hidden files, by its relative path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def is_scratch(name: str) -> bool:
    """Return whether a file name belongs to an unfinished file."""
    return _SCRATCH.fullmatch(name.rpartition("/")[2]) is not None


def stamps(store: Path) -> dict[str, Stamp]:
    """Return the entries of a cache by name, with their stamps. Raises `NotHeld` for an incomplete entry."""
    found = {}
    for path in sorted(store.rglob("*.json")):
        data, status = path.read_bytes(), path.stat()
        digest, _, body = data.partition(b"\n")
        must(digest == hashlib.sha256(body).hexdigest().encode(), f"half an entry: {path.name}")
        found[path.relative_to(store).as_posix()] = (status.st_ino, status.st_mtime_ns, data)
    return found


def must_be_equal(found: Files, expected: Files) -> None:
    """Raise `NotHeld` with the names of the files that differ."""
    other = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    must(not other, f"other files than expected: {', '.join(other)[:200]}")


def must_refuse(ended: Ended, *words: str | Path) -> str:
    """Return the one sentence of a command that refused with status 2. It must contain these words."""
    must(ended.status == 2, f"exit {ended.status}: {ended.err.strip()[-300:]}")
    sentence = ended.err.rpartition("Error: ")[2].strip()
    one = ended.err.count("Error: ") == 1 and "\n" not in sentence and "Traceback" not in ended.err
    must(one, f"not one sentence: {ended.err[-300:]}")
    for word in words:
        must(str(word) in sentence, f"no {str(word)!r} in: {sentence}")
    return sentence


@dataclass(frozen=True)
class Lab:
    """The class, and the results of scoring it without faults.

    reports: the files of the reports. before: the same files as an earlier scoring may have left them, with other
    contents and an outdated page. store: the folder of the replay cache. warm_seconds: the time to score the class with
    all replays cached. replay_seconds: the additional time of each replay.
    """

    folder: Path
    submissions: Path
    reports: Files
    before: Files
    store: Path
    warm_seconds: float
    replay_seconds: float

    def place(self, name: str) -> "Place":
        """Return a new place without results."""
        folder = self.folder / name
        folder.mkdir()
        return Place(self, folder, folder / "reports", folder / "store")


@dataclass(frozen=True)
class Place:
    """A folder for reports and a folder for the replay cache."""

    lab: Lab
    folder: Path
    out: Path
    store: Path

    def remember(self, *, without: str = "") -> None:
        """Put every replay into the cache, except the replay of this student's experiment."""
        shutil.copytree(self.lab.store, self.store, copy_function=shutil.copyfile)
        if without:
            self.replay_of(without).unlink()

    def replay_of(self, student: str) -> Path:
        """Return the path of the cache entry with the replay of a student's experiment."""
        submission = taken(self.lab.submissions / f"{student}_{RECIPE}.tar.gz")
        key = requests_of(submission, load_recipe(RECIPE))["fixed"].key
        return self.store / key[:2] / f"{key}.json"

    def start(self, *words: str | Path, enter: tuple[str, ...] = (), **variables: str) -> Watched:
        """Start `grader score` on the class."""
        told = ("score", self.lab.submissions, "--out", self.out, "--jobs", "2", *words)
        return start_grader(*told, enter=enter, **{"TRAINWRECK_REPLAYS": str(self.store), **variables})

    def score(self, *words: str | Path, enter: tuple[str, ...] = (), **variables: str) -> Ended:
        """Run `grader score` on the class to the end."""
        return self.start(*words, enter=enter, **variables).finish()

    def must_be_right(self, ended: Ended) -> None:
        """Raise `NotHeld` unless the reports have exactly the expected bytes and no other files are next to them."""
        must(ended.status == 0, f"exit {ended.status}: {ended.err.strip()[-300:]}")
        must_be_equal(content(self.out), self.lab.reports)

    def must_remember_all(self, before: Mapping[str, Stamp] | None = None) -> None:
        """Raise `NotHeld` unless every replay is cached, and the entries in `before` are still the same files."""
        must((before or {}).items() <= stamps(self.store).items(), "an entry that was there was made again")
        must_be_equal(_remembered(self.store), _remembered(self.lab.store))


def _remembered(store: Path) -> Files:
    """Return the entries of a cache without the time of each replay."""
    return {name: _SECONDS.sub(b"", data.partition(b"\n")[2]) for name, data in content(store).items()}


def start_grader(*words: str | Path, enter: tuple[str, ...] = (), **variables: str) -> Watched:
    """Start a command of the grader. enter: the beginning of the command line."""
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", **variables}
    return Watched((*enter, sys.executable, "-P", "-m", "grader", *words), environment)


def make_lab(folder: Path, known: HonestClass | None = None) -> Lab:
    """Make the class, and score it without faults. Before that, put the replays of `known` into the cache."""
    submissions = folder / "submissions"
    _make_class(submissions)
    lab = Lab(folder, submissions, {}, {}, folder / "undisturbed" / "store", 0.0, 0.0)
    place = lab.place("undisturbed")
    if known:
        known.remember(place.store)
    made = -len(content(place.store))
    seconds = []
    for _ in ("cold", "warm"):
        began = time.monotonic()
        ended = place.score()
        seconds.append(time.monotonic() - began)
        must(ended.status == 0, f"the class cannot be scored undisturbed: {ended.err}")
    made += len(content(place.store))
    cold, warm = seconds
    reports = content(place.out)
    earlier = {name: data + b"\n" for name, data in reports.items()}
    earlier[f"zed_{RECIPE}.html"] = reports[f"ada_{RECIPE}.html"]
    return Lab(folder, submissions, reports, earlier, place.store, warm, (cold - warm) / made)


def _make_class(submissions: Path) -> None:
    """Make four submissions with two different replays. The third repeats the first program, the last is rejected.

    No submission contains a run. They lose points for that, but the class is made at once.
    """
    fixed = load_recipe(RECIPE).healthy_source()
    sources = {
        "ada": fixed,
        "bob": fixed.replace("lr=0.1", "lr=0.05"),
        "cem": f"{fixed}\n# The learning rate was a hundred times too large.\n",
    }
    submissions.mkdir()
    report = recorded_evidence(RECIPE).report or ""
    for student, source in sources.items():
        files = {"experiment.py": source.encode(), "report.md": report.encode(), "command.txt": COMMANDS}
        data = packed({**files, "manifest.json": manifest(files, student=student)})
        (submissions / f"{student}_{RECIPE}.tar.gz").write_bytes(data)
    (submissions / f"eve_{RECIPE}.tar.gz").write_bytes(data[: len(data) // 2])
