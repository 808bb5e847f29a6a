"""Otter-Grader: `otter run`, which is what `otter grade` starts in a container for each submission."""

import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.gradescope import gradescope_verdict
from benchmarks.peers.notebook import notebook_environment, student_notebook
from benchmarks.peers.submissions import HandedIn
from benchmarks.peers.tool import CHECKS, Command, Lost, Verdict
from benchmarks.timing import run

NOTEBOOK = "huge_lr.ipynb"


@dataclass(frozen=True)
class Otter:
    """A notebook is executed in a kernel, and the tests after it in the same one."""

    python: Path
    name: str
    isolates: bool = False
    around: str = "a kernel, of submission and checks; with `otter grade` a container around both"
    grades: str = "a command a submission"
    points: str = "10"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Make the autograder's zip, and a zip for each student."""
        shutil.copytree(CHECKS / "otter" / "tests", folder / "tests")
        shutil.copy(CHECKS / "experiment_run.py", folder)
        words = self._words("generate", "-t", "tests", "-o", "autograder.zip", "experiment_run.py")
        run(words, notebook_environment(self.python, folder), folder)
        (folder / "handed_in").mkdir()
        for one in handed_in:
            (folder / "results" / one.student).mkdir(parents=True)
            with zipfile.ZipFile(folder / "handed_in" / f"{one.student}.zip", "w") as archive:
                archive.writestr(NOTEBOOK, student_notebook(CHECKS / "otter" / NOTEBOOK, one))
                archive.writestr("checkpoint.pt.sha256", one.sha256)

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """One a student."""
        return [
            Command(
                (name,),
                self._words("run", "-o", f"results/{name}", "--no-logo", f"handed_in/{name}.zip"),
                folder,
                notebook_environment(self.python, folder),
            )
            for name in students
        ]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Read its results, which have Gradescope's form."""
        path = folder / "results" / student / "results.json"
        return gradescope_verdict(path.read_text(encoding="utf-8") if path.is_file() else "")

    def _words(self, *words: str) -> tuple[str, ...]:
        return (str(self.python.with_name("otter")), *words)
