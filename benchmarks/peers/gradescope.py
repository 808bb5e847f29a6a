"""gradescope-utils: unittest with weights, as `run_autograder` of a Gradescope image starts it."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import activated
from benchmarks.peers.submissions import HandedIn
from benchmarks.peers.tool import CHECKS, Command, Lost, Verdict


@dataclass(frozen=True)
class GradescopeUtils:
    """One container a submission on the platform; here one folder, and no container."""

    python: Path
    name: str
    isolates: bool = False
    around: str = "on the platform a container, around submission and checks"
    grades: str = "a command a submission"
    points: str = "10"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Lay out `source`, `submission` and `results` of each autograder."""
        for one in handed_in:
            autograder = folder / one.student
            shutil.copytree(CHECKS / "gradescope", autograder / "source")
            shutil.copy(CHECKS / "experiment_run.py", autograder / "source")
            (autograder / "results").mkdir()
            write_files(autograder / "submission", one)

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """One a student."""
        words = (str(self.python), "source/run_tests.py")
        return [
            Command(
                (name,), words, folder / name, {**activated(self.python), "AUTOGRADER": str(folder / name)}
            )
            for name in students
        ]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Read the file that the platform reads."""
        path = folder / student / "results" / "results.json"
        return gradescope_verdict(path.read_text(encoding="utf-8") if path.is_file() else "")


def gradescope_verdict(text: str) -> Verdict | Lost:
    """Return what a `results.json` says, of Gradescope's form; Otter writes it as well."""
    if not text.strip():
        return Lost("no results.json")
    tests = [test for test in json.loads(text)["tests"] if "max_score" in test]
    return Verdict(sum(test["score"] for test in tests), sum(test["max_score"] for test in tests))


def write_files(folder: Path, one: HandedIn) -> None:
    """Write the two files that a student uploads where files are handed in."""
    folder.mkdir(parents=True)
    (folder / "experiment.py").write_text(one.source, encoding="utf-8")
    (folder / "checkpoint.pt.sha256").write_text(one.sha256, encoding="utf-8")
