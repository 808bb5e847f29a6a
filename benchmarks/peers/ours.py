"""This suite: `grader score` for the class, each replay in a bubblewrap sandbox of its own."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers.submissions import RECIPE, HandedIn
from benchmarks.peers.tool import Command, Lost, Verdict

FIX_POINTS = 20.0


@dataclass(frozen=True)
class Trainwreck:
    """`jobs`: replays side by side."""

    jobs: int
    name: str = f"trainwreck {version('trainwreck')}"
    isolates: bool = True
    around: str = "bubblewrap; the checks are outside of it"
    points: str = "20 for the fix, of 100"

    @property
    def grades(self) -> str:
        """With the jobs that it has."""
        return f"a command for the class, {self.jobs} side by side"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Put the tarballs into one folder."""
        (folder / "submissions").mkdir(parents=True)
        for one in handed_in:
            path = folder / "submissions" / f"{one.student}_{RECIPE}.tar.gz"
            path.write_bytes(one.tarball)

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """One for all, with a memory of its own."""
        words = (sys.executable, "-P", "-m", "grader", "score", "submissions", "--jobs", str(self.jobs))
        environment = {**os.environ, "TRAINWRECK_REPLAYS": str(folder / "replays")}
        return [Command(tuple(students), words, folder, environment)]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Read `scores.json`."""
        path = folder / "reports" / "scores.json"
        return our_verdict(path.read_text(encoding="utf-8") if path.is_file() else "", student)


def our_verdict(text: str, student: str) -> Verdict | Lost:
    """Return the points for the fix in `scores.json`, which is what the checks of the other tools look at.

    None where they wait for the instructor, none of 20 where the whole submission was rejected.
    """
    rows = json.loads(text)["submissions"] if text else []
    for row in rows:
        if row["student"] == student:
            fix = row["criteria"].get("fix")
            if fix is None:
                return Verdict(row["total"], FIX_POINTS)
            return Verdict(fix["points"], fix["max"])
    return Lost("no row in scores.json")
