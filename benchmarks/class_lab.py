"""The classes that are timed: a course in a scratch folder, its first submissions as smaller classes, each scored."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.class_check import check_rows, check_same_rows
from benchmarks.course.make import Runs, link_class, make_course, make_runs, tarball, tarball_path
from benchmarks.course.plan import SEED, Entry, planned
from benchmarks.scored import Scored, replays_in, score
from benchmarks.training_time import Program, trained_programs, training_seconds
from grader.report.scores_file import read_scores
from grader.score.verdict import SubmissionScore

JOBS = 2
SMALLER = (100, 500)
# So many students come in later: those of them count who hand in a known fix, each in words of his own.
LATER = 12
Say = Callable[[str], None]


@dataclass(frozen=True)
class ColdRun:
    """A class scored with nothing remembered: of so many submissions with so many fixes, by so many replays."""

    submissions: int
    fixes: int
    replays: int
    scored: Scored


@dataclass(frozen=True)
class Training:
    """The programs that a course has trained: how often each, and the seconds of one training by itself."""

    counts: Mapping[Program, int]
    seconds: Mapping[Program, float]

    @property
    def total(self) -> float:
        """The seconds of all of them, one after the other."""
        return sum(self.seconds[program] * count for program, count in self.counts.items())


class ClassLab:
    """A course of so many students in the folder `scratch`, where the runs it is made of are kept for the next time.

    `say` is told what is being done. What takes long is done once, when it is asked for first.
    """

    def __init__(self, students: int, scratch: Path, say: Say) -> None:
        self.entries: Sequence[Entry] = planned(students)
        more = planned(students + LATER)[len(self.entries) :]
        self.later = [
            entry for entry in more if entry.fix == "reference" and not (entry.claim or entry.attack)
        ]
        self._scratch = scratch
        self._say = say
        self._cold: dict[tuple[int, int], ColdRun] = {}

    @property
    def sizes(self) -> Sequence[int]:
        """How many submissions each class has, the whole course last."""
        return [*(size for size in SMALLER if size < len(self.entries)), len(self.entries)]

    @cached_property
    def _runs(self) -> Runs:
        self._say("the runs of which the course is made: made once, which takes minutes")
        return make_runs([*self.entries, *self.later], self._scratch / "made", JOBS, self._counting("made"))

    @cached_property
    def course(self) -> Path:
        """The folder with the tarballs of the whole course."""
        runs = self._runs
        self._say(f"{len(self.entries)} tarballs")
        folder = self._scratch / "course"
        make_course(folder, self.entries, runs, SEED)
        os.sync()  # what is still on its way to the disk would slow what is timed
        return folder

    def class_of(self, size: int, name: str) -> Path:
        """Return a new folder with the first submissions of the course."""
        return link_class(self.course, self.entries[:size], self._scratch / "classes" / name)

    def add_later(self, entry: Entry, folder: Path) -> None:
        """Lay one of the submissions that come in later into a folder."""
        tarball_path(folder, entry).write_bytes(tarball(entry, self._runs, SEED))

    def memory(self, size: int, jobs: int = JOBS) -> Path:
        """Return where the replays and scores of a class are remembered that was scored by so many workers."""
        return self._scratch / "memory" / f"{size}-{jobs}"

    def reports(self, size: int, jobs: int = JOBS) -> Path:
        """Return where the reports of that class lie."""
        return self._scratch / "reports" / f"{size}-{jobs}"

    def score(self, submissions: Path, size: int, jobs: int = JOBS, *, look: bool = False) -> Scored:
        """Score a folder with what is remembered of a class."""
        return score(submissions, self.reports(size, jobs), self.memory(size, jobs), jobs, look=look)

    def cold(self, size: int, jobs: int = JOBS) -> ColdRun:
        """Return how a class was scored with nothing remembered; that is done once.

        Raises `BenchmarkError` where a row came out as it must not, or other than in another class.
        """
        if (size, jobs) not in self._cold:
            submissions = self.class_of(size, f"{size}")
            for folder in (self.memory(size, jobs), self.reports(size, jobs)):
                shutil.rmtree(folder, ignore_errors=True)
            self._say(f"{size} submissions from cold, {jobs} worker(s)")
            scored = self.score(submissions, size, jobs, look=True)
            check_rows(self.entries[:size], self.rows(size, jobs))
            for other, others in self._cold:
                self._compare((size, jobs), (other, others))
            own = self.entries[:size]
            fixes = {(entry.recipe, entry.fix) for entry in own}
            replays = replays_in(self.memory(size, jobs))
            self._cold[size, jobs] = ColdRun(size, len(fixes), replays, scored)
        return self._cold[size, jobs]

    def rows(self, size: int, jobs: int = JOBS) -> Sequence[SubmissionScore]:
        """Return the rows of a class that was scored."""
        return read_scores(self.reports(size, jobs)).submissions

    def _compare(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        smaller, larger = sorted((one, other))
        check_same_rows(self.rows(*smaller), self.rows(*larger))

    @cached_property
    def training(self) -> Training:
        """What the experiments of the whole course train by themselves."""
        counts = trained_programs(self.entries)
        self._say(f"{len(counts)} trainings by themselves")
        return Training(counts, training_seconds(list(counts), self._counting("trained")))

    def _counting(self, what: str) -> Callable[[int, int], None]:
        def update(done: int, total: int) -> None:
            if done % 10 == 0 or done == total:
                self._say(f"  {what} {done} of {total}")

        return update
