"""What `make bench-class` measures, and that it takes no wrong scores for a measurement."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import bench_class
from benchmarks.class_check import check_rows, check_same_rows, complaints_of
from benchmarks.class_lab import ClassLab, ColdRun, Training
from benchmarks.class_page import as_section
from benchmarks.class_size import size_rows, size_table
from benchmarks.course.plan import Entry, fixes_of, planned
from benchmarks.process_memory import SANDBOX, Peak, high_water, together
from benchmarks.scored import Scored
from benchmarks.table import Machine
from benchmarks.timing import BenchmarkError
from benchmarks.training_time import trained_programs, training_seconds
from grader.sandbox import sandbox_problem
from grader.score.verdict import CRITERIA, Criterion, Status, SubmissionScore, criterion_score, full, lost
from harness.recipe import load_recipe

MACHINE = Machine("A Processor @ 1 GHz", 2, "3.11.7", "2.13.0", 0.25)
HONEST = next(entry for entry in planned(1) if entry.fix == "reference" and not (entry.claim or entry.attack))


def row(entry: Entry, *, status: Status = "graded", runs: float = 35, fix: float = 20) -> SubmissionScore:
    """Return a row with these points for both runs, of 35, and for the fix, of 20."""
    points = {"reproducibility": (runs, 35.0), "fix": (fix, 20.0)}
    criteria: dict[Criterion, object] = {}
    for name in CRITERIA:
        earned, most = points.get(name, (10.0, 10.0))
        whole = full("a", "A", most, "because")
        check = whole if earned == most else lost("a", "A", most, "because", "do", points=earned)
        criteria[name] = criterion_score((check,))
    return SubmissionScore.model_validate(
        {
            "submission": entry.name,
            "student": entry.student,
            "recipe": entry.recipe,
            "status": status,
            "reason": "because" if status != "graded" else "",
            "total": None,
            "criteria": criteria if status != "rejected" else {},
            "provenance": {},
        }
    )


def test_right_rows_are_let_through() -> None:
    claim, refused = replace(HONEST, claim="other run"), replace(HONEST, claim="wrong hash")
    attack, archive = replace(HONEST, attack="crash"), replace(HONEST, attack="zip")
    masking = next(fix for fix in fixes_of(HONEST.recipe) if fix.verdict == "masking")
    masked = replace(HONEST, fix=masking.id)
    for entry, made in (
        (HONEST, row(HONEST)),
        (claim, row(claim, runs=20)),
        (refused, row(refused, status="rejected")),
        (attack, row(attack, runs=10, fix=0)),
        (archive, row(archive, status="rejected")),
        (masked, row(masked, fix=3)),
    ):
        check_rows([entry], [made])


@pytest.mark.parametrize(
    ("entry", "made", "complaint"),
    [
        (HONEST, {"fix": 4.0}, "has 4.0 points for its fix, and full has 18 to 20"),
        (HONEST, {"runs": 20.0}, "20.0 points of 35 for its runs"),
        (HONEST, {"status": "rejected"}, "it is rejected: because"),
        (replace(HONEST, claim="better log"), {}, "35.0 points of 35 for its runs"),
        (replace(HONEST, claim="wrong hash"), {}, "it is graded, not rejected"),
        (replace(HONEST, attack="bomb"), {}, "it is graded, not rejected"),
        (replace(HONEST, attack="tampering"), {"runs": 0.0}, "20 points for its fix"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_row_is_no_measurement(entry: Entry, made: dict[str, object], complaint: str) -> None:
    wrong = row(entry, **made)  # type: ignore[arg-type]
    assert any(complaint in told for told in complaints_of(entry, wrong))
    with pytest.raises(BenchmarkError, match="1 rows are not what they must be"):
        check_rows([entry], [wrong])


def test_a_row_that_is_missing_or_of_nobody_is_no_measurement() -> None:
    other = replace(HONEST, student="zoe")
    with pytest.raises(BenchmarkError, match="there is no row"):
        check_rows([HONEST, other], [row(HONEST)])
    with pytest.raises(BenchmarkError, match="nobody handed that in"):
        check_rows([HONEST], [row(HONEST), row(other)])


def test_rows_of_a_smaller_class_are_those_of_the_larger() -> None:
    other = replace(HONEST, student="zoe")
    check_same_rows([row(HONEST)], [row(HONEST), row(other)])
    with pytest.raises(BenchmarkError, match="differ"):
        check_same_rows([row(HONEST, runs=3)], [row(HONEST), row(other)])


def test_what_a_class_trains_is_each_program_once_and_the_suite_s_own() -> None:
    fixes = fixes_of(HONEST.recipe)
    entries = [
        HONEST,
        replace(HONEST, student="bob"),
        replace(HONEST, fix=fixes[1].id),
        replace(HONEST, fix=fixes[2].id, claim="wrong hash"),  # the intake refuses it
        replace(HONEST, fix=fixes[3].id, attack="crash"),
        replace(HONEST, attack="tampering"),
    ]
    counts = trained_programs(entries)
    recipe = load_recipe(HONEST.recipe)
    assert {program for program, _ in counts} == {HONEST.recipe}
    assert counts[recipe.id, recipe.broken_source()] == 1
    # Reference twice by the grader; once by students, in whatever text the variant has.
    healthy = sum(count for (_, source), count in counts.items() if source == recipe.healthy_source())
    assert healthy in (2, 3)
    assert sum(counts.values()) == 3 + 3


@pytest.mark.slow
@pytest.mark.skipif(sandbox_problem() is not None, reason="needs a sandbox")
def test_a_training_is_timed_in_the_sandbox(tmp_path: Path) -> None:
    source = load_recipe("huge_lr").healthy_source().replace("EPOCHS = 5", "EPOCHS = 1")
    told: list[tuple[int, int]] = []
    found = training_seconds([("huge_lr", source)], lambda done, total: told.append((done, total)))
    assert 0.0 < found["huge_lr", source] < 60.0
    assert told == [(1, 1)]
    with pytest.raises(BenchmarkError, match="ended with RE"):
        training_seconds([("huge_lr", source + "raise SystemExit(1)\n")], lambda done, total: None)


FORKED = """
import os, time
block = b"x" * 2**26
child = os.fork()
if child == 0:
    own = b"y" * 2**25
    print("ready", flush=True)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
time.sleep(60)
"""


def test_memory_is_that_of_a_process_and_its_forks_each_page_once(tmp_path: Path) -> None:
    # A process of this name is taken for a sandbox. It shares 64 MiB with its fork, which has another 32 of its own.
    name = tmp_path / SANDBOX
    name.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([name, "-I", "-c", FORKED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(
            next(line for line in [process.stdout.readline(), process.stdout.readline()] if line != "ready\n")
        )
        try:
            assert 96 * 2**20 < together([process.pid, child]) < 128 * 2**20
            assert 64 * 2**20 < high_water(process.pid) < 96 * 2**20
            peak = Peak()
            peak.look(os.getpid(), below=False)
            assert peak.leader > 0
            assert peak.grader == peak.worker == 0
            peak.look(os.getpid(), below=True)
            assert 96 * 2**20 < peak.worker < 128 * 2**20
        finally:
            os.kill(child, signal.SIGKILL)
            process.kill()


def test_what_the_grader_starts_outside_of_sandboxes_is_its_own() -> None:
    with subprocess.Popen([sys.executable, "-I", "-c", FORKED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(
            next(line for line in [process.stdout.readline(), process.stdout.readline()] if line != "ready\n")
        )
        try:
            peak = Peak()
            peak.look(process.pid, below=True)
            assert 64 * 2**20 < peak.leader < 96 * 2**20 < peak.grader < 128 * 2**20
            assert peak.worker == 0
        finally:
            os.kill(child, signal.SIGKILL)
            process.kill()


def test_memory_of_one_process_is_what_the_kernel_says_of_it() -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    status = {
        name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if rest.strip()
    }
    resident = 1024 * (int(status["RssAnon"]) + int(status["RssFile"]))
    assert together([os.getpid()]) == pytest.approx(resident, rel=0.02)


class MadeLab(ClassLab):
    """A lab whose classes were never scored: so many seconds, replays and bytes for each size."""

    def cold(self, size: int, jobs: int = 2) -> ColdRun:
        seconds = {100: 50.0, 500: 100.0, 2100: 300.0}[size]
        return ColdRun(
            size,
            60,
            size // 10,
            Scored(seconds, Peak(leader=120 * 10**6, grader=250 * 10**6, worker=600 * 10**6)),
        )

    @property
    def training(self) -> Training:
        return Training(
            {("huge_lr", "a"): 2, ("huge_lr", "b"): 1}, {("huge_lr", "a"): 50.0, ("huge_lr", "b"): 80.0}
        )


def test_rows_of_sizes_are_computed_from_what_was_measured(tmp_path: Path) -> None:
    lab = MadeLab(300, tmp_path, print)
    rows = {made.name: made for made in size_rows(lab)}
    assert rows["cold"].value == 300.0
    assert rows["cold"].met
    assert rows["cold-training"].value == pytest.approx((300 - 63) / 180)
    assert not rows["cold-training"].met
    assert rows["growth"].value == pytest.approx(3 / 4.2)
    assert rows["memory-grader"].met
    assert not rows["memory-worker"].met
    section = as_section(list(rows.values()), size_table(lab), MACHINE)
    assert "| 500 | 60 | 50 | 100 s | 200 ms |" in section
    assert "| memory of a worker, the same | 600 MB | at most 500 MB | NO |" in section


def test_a_course_smaller_than_the_usual_classes_is_one_class(tmp_path: Path) -> None:
    assert ClassLab(3, tmp_path, print).sizes == [21]
    assert ClassLab(15, tmp_path, print).sizes == [100, 105]


def test_the_section_is_of_the_whole_course_alone() -> None:
    for more in (["--students", "15"], ["--only", "sizes"]):
        done = CliRunner().invoke(bench_class.main, ["--write", *more])
        assert done.exit_code == 2
        assert "whole course" in done.stderr
