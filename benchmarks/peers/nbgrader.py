"""nbgrader: a course folder, a notebook for each student, and `nbgrader autograde` for all of them."""

import csv
import io
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.notebook import notebook_environment, student_notebook
from benchmarks.peers.submissions import HandedIn
from benchmarks.peers.tool import CHECKS, Command, Lost, Verdict
from benchmarks.timing import run

ASSIGNMENT = "huge_lr"
NOTEBOOK = "huge_lr.ipynb"


@dataclass(frozen=True)
class Nbgrader:
    """Every notebook is executed in a kernel, student's cells and checks alike."""

    python: Path
    name: str
    isolates: bool = False
    around: str = "a kernel, of submission and checks"
    grades: str = "a command for the class, one after the other"
    points: str = "10"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        """Make the course and its release, and put the submissions where students' go."""
        source = folder / "source" / ASSIGNMENT
        source.mkdir(parents=True)
        shutil.copy(CHECKS / "nbgrader" / "nbgrader_config.py", folder)
        shutil.copy(CHECKS / "nbgrader" / NOTEBOOK, source)
        shutil.copy(CHECKS / "experiment_run.py", source)
        run(self._words("generate_assignment", ASSIGNMENT), notebook_environment(self.python, folder), folder)
        for one in handed_in:
            place = folder / "submitted" / one.student / ASSIGNMENT
            place.mkdir(parents=True)
            notebook = student_notebook(folder / "release" / ASSIGNMENT / NOTEBOOK, one)
            (place / NOTEBOOK).write_text(notebook, encoding="utf-8")
            (place / "checkpoint.pt.sha256").write_text(one.sha256, encoding="utf-8")

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        """One for all."""
        words = self._words("autograde", ASSIGNMENT)
        return [Command(tuple(students), words, folder, notebook_environment(self.python, folder))]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        """Read the table that it exports, and whether there is a graded notebook behind the row."""
        graded = (folder / "autograded" / student / ASSIGNMENT / NOTEBOOK).is_file()
        return nbgrader_verdict(self._export(folder), student, graded=graded)

    def _export(self, folder: Path) -> str:
        table, gradebook = folder / "grades.csv", folder / "gradebook.db"
        if not table.is_file() or table.stat().st_mtime_ns < gradebook.stat().st_mtime_ns:
            run(self._words("export", "--to", table.name), notebook_environment(self.python, folder), folder)
        return table.read_text(encoding="utf-8")

    def _words(self, *words: str) -> tuple[str, ...]:
        return (str(self.python.with_name("nbgrader")), *words)


def nbgrader_verdict(table: str, student: str, *, graded: bool) -> Verdict | Lost:
    """Return what `grades.csv` says; where a notebook could not be executed, its row is a zero all the same."""
    rows = {row["student_id"]: row for row in csv.DictReader(io.StringIO(table))}
    row = rows.get(student)
    if not graded:
        said = "no row" if row is None else f"{float(row['score']):g} of {float(row['max_score']):g}"
        return Lost(f"not graded; its gradebook says {said}")
    if row is None:
        return Lost("no row in its gradebook")
    return Verdict(float(row["score"]), float(row["max_score"]))
