"""check50: checks that run in a copy of the student's folder, started one by one."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import activated
from benchmarks.peers.gradescope import write_files
from benchmarks.peers.submissions import HandedIn
from benchmarks.peers.tool import CHECKS, Command, Lost, Verdict


@dataclass(frozen=True)
class Check50:
    """`check50 --dev`: local checks on this machine. Its points are the checks that passed."""

    python: Path
    name: str
    isolates: bool = False
    around: str = "a folder of its own"
    grades: str = "a command a submission"
    points: str = "4 checks"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Lay out the checks, and a folder for each student."""
        shutil.copytree(CHECKS / "check50", folder / "checks")
        shutil.copy(CHECKS / "experiment_run.py", folder / "checks")
        (folder / "results").mkdir()
        for one in handed_in:
            write_files(folder / "handed_in" / one.student, one)

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """One a student."""
        check50 = str(self.python.with_name("check50"))
        return [
            Command(
                (name,),
                (
                    check50,
                    "--dev",
                    "-o",
                    "json",
                    "--output-file",
                    str(_result(folder, name)),
                    str(folder / "checks"),
                ),
                folder / "handed_in" / name,
                activated(self.python),
            )
            for name in students
        ]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Read its JSON."""
        path = _result(folder, student)
        return check50_verdict(path.read_text(encoding="utf-8") if path.is_file() else "")


def _result(folder: Path, student: str) -> Path:
    return folder / "results" / f"{student}.json"


def check50_verdict(text: str) -> Verdict | Lost:
    """Return what the output of `-o json` says: a check that could not be made counts as one that failed."""
    if not text.strip():
        return Lost("no output")
    found = json.loads(text)
    if "error" in found:
        return Lost(found["error"]["type"])
    passed = sum(bool(check["passed"]) for check in found["results"])
    return Verdict(passed, len(found["results"]))
