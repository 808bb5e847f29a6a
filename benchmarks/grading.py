"""What grading costs: one submission from cold, an unchanged class, and all that is not replay."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from benchmarks.timing import BenchmarkError, Row, interleaved, ratio_row, seconds_of, seconds_row
from grader.course.demo import repacked
from grader.course.examples import broken_workspace, example_submission
from grader.replay.request import canary_requests
from grader.sandbox import sandbox_problem
from harness.canonical_setup import run_environment
from harness.recipe import load_recipe

RECIPE = "huge_lr"
CLASS = 60
HERE = Path(__file__).parent


@contextmanager
def _submission() -> Iterator[Path]:
    """Make one submission with the reference fix; the folder holds `submissions/` with it alone."""
    problem = sandbox_problem()
    if problem is not None:
        raise BenchmarkError(problem)
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as scratch:
        folder = Path(scratch)
        template = broken_workspace(RECIPE, folder / "template")
        # Not the reference fix: that one's training would be a canary's, too.
        source = load_recipe(RECIPE).healthy_source().replace("lr=0.1,", "lr=0.08,")
        example_submission(RECIPE, "ada", source, template, folder / "work", folder / "submissions")
        yield folder


def _score(folder: Path, out: str = "reports") -> float:
    words = [sys.executable, "-P", "-m", "grader", "score", "submissions", "--out", out]
    environment = {**os.environ, "TRAINWRECK_REPLAYS": str(folder / "replays")}
    start = perf_counter()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"grader score ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return perf_counter() - start


def bench_cold(rounds: int) -> Row:
    """Time scoring one submission whose fix was never seen against one plain run of its experiment.

    What a class shares (the broken run, the reference fix, both with their evaluation) was replayed before, as it
    is before any but the first submission of a recipe.
    """
    plain = [sys.executable, str(HERE / "plain_mlp.py")]
    with _submission() as folder:
        _score(folder)
        shared = folder / "shared"
        forget_the_students(folder / "replays")
        shutil.copytree(folder / "replays", shared)

        def cold() -> float:
            shutil.rmtree(folder / "replays")
            shutil.copytree(shared, folder / "replays")
            return _score(folder)

        seconds = interleaved(
            {
                "grader score": cold,
                "plain script": lambda: seconds_of(plain, run_environment("portable")),
            },
            rounds,
        )
    what = "grader score of one new submission (MLP), whole process / plain script"
    return ratio_row("grade-cold", what, 2.5, seconds, "grader score", "plain script")


def forget_the_students(replays: Path) -> None:
    """Delete what is remembered of the submission itself: its row, and the replay that the class does not share.

    Raises `BenchmarkError` where there is no such replay: what is timed after that would not be cold.
    """
    shutil.rmtree(replays / "graded")
    shared = {request.key for request in canary_requests(RECIPE)}
    own = [path for path in replays.rglob("*.json") if path.stem not in shared]
    if not own:
        raise BenchmarkError(f"{replays} holds no replay of a student's: there is nothing to forget.")
    for path in own:
        path.unlink()


def make_class(submissions: Path, size: int) -> None:
    """Make a class of this size out of the one submission that is there: the same fix, each in its own words."""
    (path,) = submissions.glob("*.tar.gz")
    good = path.read_bytes()
    for index in range(1, size):
        name = f"student{index}"
        copy = repacked(good, student=name, change=_signed(name))
        (submissions / f"{name}_{RECIPE}.tar.gz").write_bytes(copy)


def _signed(name: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        members["experiment.py"] += f"# {name}\n".encode()

    return change


def _help() -> float:
    return seconds_of([sys.executable, "-m", "grader", "--help"])


def bench_unchanged(rounds: int) -> Row:
    """Time scoring an unchanged class again, whole process, a submission."""
    with _submission() as folder:
        make_class(folder / "submissions", CLASS)
        _score(folder)
        seconds = interleaved(
            {
                "again": lambda: _score(folder) / CLASS,
                "grader --help": _help,
            },
            rounds,
        )
    what = f"grader score of an unchanged class of {CLASS}, whole process, a submission"
    return seconds_row("grade-unchanged", what, 0.05, seconds, "again", "grader --help")


def bench_without_replay(rounds: int) -> Row:
    """Time intake, checks and reports where every replay is remembered and no score is, a submission."""
    with _submission() as folder:
        make_class(folder / "submissions", CLASS)
        _score(folder)

        def checks() -> float:
            shutil.rmtree(folder / "replays" / "graded")
            return _score(folder) / CLASS

        seconds = interleaved(
            {
                "checks": checks,
                "grader --help": _help,
            },
            rounds,
        )
    what = f"intake, checks and reports of a class of {CLASS}, all replays known, whole process, a submission"
    return seconds_row("grade-checks", what, 0.1, seconds, "checks", "grader --help")
