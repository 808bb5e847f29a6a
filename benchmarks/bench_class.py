"""`make bench-class`: make a course of 300 students and seven cases, grade it twice, and measure time and memory.

The cache is empty when the course is graded for the first time. Every student has a personal seed and all runs are
made, so all 4,200 runs differ. Each submission contains a known edit of its case. One submission in ten contains a log
that is better than the log of its run, and one in fifty is hostile. Every score is compared with the known verdict for
the edit. The exit status is 1 if a target is missed.
"""

import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

import click

from benchmarks.measure import (
    PAGE,
    BenchmarkError,
    Row,
    command_path,
    finish,
    interleaved,
    need_sandbox,
    portable_pool,
    ratio_row,
    this_machine,
)
from benchmarks.repack import repacked
from grader.course.course import read_course
from grader.course.examples import edits_of
from grader.report.gradebook import csv_bytes
from grader.score.fix import CORRECT, MASKED
from grader.score.scores_file import read_scores
from grader.score.self_test import reference_report
from grader.score.verdict import SubmissionScore
from harness.canonical_setup import usable_cores
from harness.recipes.cases import Case
from harness.recipes.catalogue import Catalogue
from harness.run.files import METRICS_LOG
from harness.run.launch import Reporter
from harness.run.settings import RunSettings
from harness.student.hand_in import submit
from harness.student.runs import workspace_job
from harness.workspace.workspace import RUNS, Run, create_workspace

COURSE = Path(__file__).with_name("class.toml")
STUDENTS, SEED = 300, 1
# Targets: seconds with an empty cache, seconds for grading again, MB of memory.
COLD, UNCHANGED, MEMORY = 1500.0, 60.0, 300.0
THROUGHPUT = 1.85  # target: two workers must be faster than one by this factor
# In each round, first one worker and then all workers grade the submissions of the same students, because the speed of
# a machine changes within a quarter of an hour. The command also takes 4 s that do not depend on the number of
# submissions. With 60 students, this is 2.5 % of a round with two workers; with the whole class, it is 0.5 %.
ROUNDS, ROUND_STUDENTS = 5, 60
_LOOK = 0.2  # seconds between two measurements of the memory
# How often each kind of edit is handed in: most students find a right fix.
_WEIGHTS = {"right": 9, "masked": 2, "wrong": 1}
# The points (least, most) for `correct` that a submission with each kind of edit must get.
_EXPECTED = {"right": (CORRECT, CORRECT), "masked": (0.0, MASKED), "wrong": (0.0, 0.0)}
Kind = Literal["honest", "forged", "truncated", "raises"]


class Planned(NamedTuple):
    """A submission to make: its student, its case, its known edit (a key of `_WEIGHTS`), and whether it is honest."""

    student: str
    case: str
    edit: str
    kind: Kind

    @property
    def name(self) -> str:
        """The name of the submission's file, without the ending."""
        return f"{self.student}_{self.case}"


def plan(students: int, cases: Sequence[Case], seed: int = SEED) -> list[Planned]:
    """Return the submissions of a class. Equal arguments give the same class."""
    random_ = random.Random(seed)
    entries = []
    for index in range(students * len(cases)):
        student, case = divmod(index, len(cases))
        (edit,) = random_.choices([*_WEIGHTS], [*_WEIGHTS.values()])
        if edit == "wrong" and cases[case].is_healthy:
            edit = "masked"  # a healthy case has no wrong fix
        kind: Kind = "honest"
        if index % 50 == 49:
            kind = "truncated" if index % 100 == 49 else "raises"
        elif index % 10 == 9:
            kind = "forged"
        entries.append(Planned(f"student{student}", cases[case].id, edit, kind))
    return entries


def write_course(folder: Path, students: int) -> Path:
    """Write the course and its roster, and return the path of the course file."""
    lines = [(f"student{index}", f"Student {index}", f"student{index}@example.org", "1") for index in range(students)]
    (folder / "roster.csv").write_bytes(csv_bytes([("login", "name", "email", "section"), *lines]))
    (folder / "course.toml").write_bytes(COURSE.read_bytes())
    return folder / "course.toml"


def make_class(entries: Sequence[Planned], cases: Mapping[str, Case], folder: Path, jobs: int) -> None:
    """Make the tarballs of a class in a folder. `jobs` processes make the runs, without a sandbox."""
    edits = {case.id: edits_of(case) for case in cases.values()}
    folder.mkdir()
    with portable_pool(jobs) as pool:
        made, sources = zip(*((cases[one.case], edits[one.case][one.edit]) for one in entries), strict=True)
        for entry, data in zip(entries, pool.map(_handed_in, entries, made, sources, chunksize=4), strict=True):
            (folder / f"{entry.name}.tar.gz").write_bytes(_tarball(entry, data))


def _handed_in(entry: Planned, case: Case, source: str) -> bytes:
    """Make both runs with the student's seed, and return the tarball that the student hands in."""
    from harness.student.run_process import make_run

    settings = RunSettings(seed=case.seed_of(entry.student), dataset=case.dataset)
    nobody = Reporter(os.open(os.devnull, os.O_WRONLY))
    with tempfile.TemporaryDirectory(prefix="trainwreck-student-") as scratch:
        workspace = create_workspace(Path(scratch), case.id, case.broken_source(), settings, Catalogue([case]))
        workspace.experiment.write_text(source, encoding="utf-8")
        sources: Mapping[Run, str] = {"broken": case.broken_source(), "fixed": source}
        for run, text in sources.items():
            make_run(workspace_job(workspace, case, run, text), nobody)
        broken, fixed = ((workspace.run_folder(run) / METRICS_LOG).read_text(encoding="utf-8") for run in RUNS)
        report = reference_report(case, broken, fixed)
        workspace.report.write_text(f"{report}\nThis is how {entry.student} sees it.\n", encoding="utf-8")
        return submit(workspace, entry.student, Path(scratch)).path.read_bytes()


def _tarball(entry: Planned, honest: bytes) -> bytes:
    """Return the tarball that a student hands in; a dishonest or hostile submission is made from an honest one."""

    def change(members: dict[str, bytes]) -> None:
        if entry.kind == "raises":
            source = b"raise SystemExit(3)\n" + members["experiment.py"]
            members["experiment.py"] = members["runs/fixed/experiment.py"] = source
        elif entry.kind == "forged":
            *lines, last = members["runs/fixed/metrics.log"].decode().splitlines()
            better = json.dumps({**json.loads(last), "val_loss": 0.0001})
            members["runs/fixed/metrics.log"] = "\n".join([*lines, better, ""]).encode()

    if entry.kind == "truncated":
        return honest[: len(honest) // 2]
    return honest if entry.kind == "honest" else repacked(honest, student=entry.student, change=change)


def problems(entries: Sequence[Planned], rows: Mapping[str, SubmissionScore]) -> Iterator[str]:
    """Yield what is wrong with the scores, because a time means nothing if the grader did not do its work."""
    for entry in entries:
        row = rows.get(entry.name)
        if row is None:
            yield f"{entry.name} has no row"
        elif entry.kind == "truncated":
            if row.status != "rejected":
                yield f"{entry.name} is truncated, and {row.status}"
        elif entry.kind == "raises":
            if row.criteria.get("fix") and row.criteria["fix"].points:
                yield f"{entry.name} raises, and has points for its fix"
        elif not row.criteria:
            yield f"{entry.name} is {row.status}: {row.reason}"
        else:
            yield from _wrong_points(entry, row)


def _wrong_points(entry: Planned, row: SubmissionScore) -> Iterator[str]:
    correct = row.criteria["fix"].checks[0]
    low, high = _EXPECTED[entry.edit]
    if correct.points is not None and not low <= correct.points <= high:
        wanted = f"{entry.edit} has {low:g} to {high:g}"
        yield f"{entry.name} has {correct.points:g} points for a correct fix; {wanted}: {correct.reason}"
    runs = row.criteria["reproducibility"]
    full = runs.points == runs.max
    # A run with an edit that fixes nothing gets no points.
    if runs.points is not None and (full if entry.kind == "forged" else not full and correct.points != 0):
        yield f"{entry.name} ({entry.kind}) has {runs.points:g} points for its runs"


def score(folder: Path, submissions: Path, jobs: int, known: str = "replays") -> tuple[float, float]:
    """Run `grader score`. Return its wall-clock time in seconds, and the memory of its main process in MB.

    known: the folder with the cache of replays.
    """
    words = ["score", str(submissions), "--course", "course.toml", "--out", "reports", "--jobs", str(jobs)]
    environment = {**os.environ, "TRAINWRECK_REPLAYS": str(folder / known)}
    said, peak = folder / "said.txt", 0.0
    start = perf_counter()
    with said.open("w") as file:
        process = subprocess.Popen(
            [command_path("grader"), *words], env=environment, cwd=folder, stdout=file, stderr=file
        )
        while process.poll() is None:
            with suppress(OSError, LookupError, ValueError):  # the process has just ended
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                [line] = [line for line in lines if line.startswith("VmHWM:")]
                peak = int(line.split()[1]) * 1024 / 1e6
            time.sleep(_LOOK)
    seconds = perf_counter() - start
    if process.returncode not in (0, 1):
        raise BenchmarkError(f"grader score ended with status {process.returncode}:\n{said.read_text()[-2000:]}")
    return seconds, peak


def measure(students: int, folder: Path, jobs: int) -> list[Row]:
    """Make and grade a class in an empty folder, and return the results. Raises `BenchmarkError` for a wrong score."""
    course = read_course(write_course(folder, students))
    cases = {case.id: case for case in course.cases(course.assignment[0])}
    entries = plan(students, [*cases.values()])
    size, runs = len(entries), 2 * len(entries)
    _say(f"making {size} submissions ...")
    submissions = folder / "submissions"
    make_class(entries, cases, submissions, jobs)
    compared = throughput(entries, folder, jobs)
    _say(f"grading them with {jobs} workers and an empty cache ...")
    cold, peak = score(folder, submissions, jobs)
    first = (folder / "reports" / "scores.json").read_bytes()
    wrong = [*problems(entries, {row.submission: row for row in read_scores(folder / "reports").submissions})]
    _say("grading them again ...")
    again, peak_again = score(folder, submissions, jobs)
    if (folder / "reports" / "scores.json").read_bytes() != first:
        raise BenchmarkError("The scores of the unchanged class differ.")
    share = size / (STUDENTS * len(cases))
    made = f"{runs} distinct runs of students, {jobs} jobs, {1000 * cold / size:.0f} ms a submission"
    rows = [
        compared,
        Row(f"{size} submissions from cold", cold, "s", COLD * max(share, 0.1), made),
        Row("the same, unchanged", again, "s", UNCHANGED * max(share, 0.1), f"{1000 * again / size:.0f} ms each"),
        Row("memory of the grader", max(peak, peak_again), "MB", MEMORY, f"unchanged {peak_again:.0f} MB"),
    ]
    if wrong:
        figures = "; ".join(" ".join(row.cells()[:2]) for row in rows)
        raise BenchmarkError(f"{len(wrong)} scores are wrong: {'; '.join(wrong[:5])}. The measurements are: {figures}.")
    return rows


def throughput(entries: Sequence[Planned], folder: Path, jobs: int) -> Row:
    """Return the time in which `jobs` workers grade a part of the class, divided by the time of one worker.

    The cache is empty at the start of each grading.
    """
    part = folder / "part"
    part.mkdir()
    some = [*dict.fromkeys(entry.student for entry in entries)][:ROUND_STUDENTS]
    names = [entry.name for entry in entries if entry.student in some]
    for name in names:
        (part / f"{name}.tar.gz").hardlink_to(folder / "submissions" / f"{name}.tar.gz")

    def seconds(workers: int) -> float:
        _say(f"grading {len(names)} of them with {workers} worker(s) and an empty cache ...")
        took = score(folder, part, workers, known="replays-part")[0]
        for made in (
            "replays-part",
            "reports",
        ):  # otherwise the next grading would use the cached replays, and list changes
            shutil.rmtree(folder / made)
        return took

    timed = interleaved({"one": partial(seconds, 1), "jobs": partial(seconds, jobs)}, ROUNDS)
    what = f"time with {jobs} workers / with one, {len(names)} submissions"
    return ratio_row(what, 1 / THROUGHPUT, timed, "jobs", "one")


def _say(message: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {message}", err=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--students", type=click.IntRange(min=1), default=STUDENTS, show_default=True, help="How many students.")
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(students: int, write: bool) -> None:
    """Measure the time and the memory for grading a whole class, and exit with 1 if a target is missed."""
    if write and students != STUDENTS:
        raise click.UsageError("--write needs the whole class: do not use it with --students.")
    need_sandbox()
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="trainwreck-class-") as folder:
        rows = measure(students, Path(folder), usable_cores())
    finish("class", rows, machine, write=write)


if __name__ == "__main__":
    main()
