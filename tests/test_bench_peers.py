import ast
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bench_peers import (
    PEERS,
    Lost,
    Measured,
    Outcome,
    Verdict,
    check50_verdict,
    gradescope_verdict,
    kept,
    lost,
    nbgrader_verdict,
    our_verdict,
    run_watched,
    written,
)

# What the tools themselves wrote, in a run of the benchmark.
RESULTS = Path(__file__).with_name("peer_results")


def test_ten_different_experiments_are_handed_in() -> None:
    ten = written()
    assert sorted(one.kind for one in ten) == ["cheats", "exits", "loops", *["right"] * 5, *["wrong"] * 2]
    assert len({ast.dump(ast.parse(one.source)) for one in ten}) == 10  # so none of ours shares a replay


@pytest.mark.parametrize(
    ("read", "name", "verdict"),
    [
        (gradescope_verdict, "gradescope_wrong.json", Verdict(4.0, 10.0)),
        (gradescope_verdict, "otter_right.json", Verdict(10.0, 10.0)),
        (gradescope_verdict, "", Lost("no result: no results.json")),
        (check50_verdict, "check50_cheats.json", Verdict(4, 4)),
        (check50_verdict, "check50_exits.json", Verdict(1, 4)),
        (check50_verdict, "check50_error.json", Lost("no result: MissingFilesError")),
        (check50_verdict, "", Lost("no result: no output")),
        (lambda text: nbgrader_verdict(text, "ada", graded=True), "nbgrader_grades.csv", Verdict(10.0, 10.0)),
        (lambda text: nbgrader_verdict(text, "edsger", graded=True), "nbgrader_grades.csv", Verdict(4.0, 10.0)),
        # A zero of nbgrader is none if nothing was graded.
        (lambda text: nbgrader_verdict(text, "elliot", graded=False), "nbgrader_grades.csv",
            Lost("no result: not graded; its gradebook says 0 of 10")),
        (lambda text: our_verdict(text, "ada"), "trainwreck_scores.json", Verdict(20.0, 20.0)),
        (lambda text: our_verdict(text, "charles"), "trainwreck_scores.json", Verdict(None, 20.0)),
        (lambda text: our_verdict(text, "nobody"), "trainwreck_scores.json",
            Lost("no result: no row in scores.json")),
    ],
)  # fmt: skip
def test_what_a_tool_wrote_is_read(read: Callable[[str], Verdict | Lost], name: str, verdict: Verdict | Lost) -> None:
    assert read((RESULTS / name).read_text(encoding="utf-8") if name else "") == verdict


def test_a_command_is_ended_at_its_limit_with_what_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print(child.pid, flush=True); time.sleep(600)\n"
    )
    _, status, output = run_watched([sys.executable, "-c", code], tmp_path, os.environ, 2.0)
    assert status is None
    stat = Path(f"/proc/{int(output)}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_ours_must_be_the_fastest_that_isolates_and_lose_nothing_alone() -> None:
    right, loops = Outcome("right", Verdict(10.0, 10.0)), Outcome("loops", Verdict(0.0, 10.0))
    outcomes = (right, loops, Outcome("cheats", Verdict(None, 10.0)))
    safe = Measured(replace(PEERS[0], name="safe", isolates=True), 3.0, 0.5, outcomes)
    outcomes = (right, Outcome("loops", Lost("nothing")), Outcome("cheats", Verdict(10.0, 10.0)))
    quick = Measured(replace(PEERS[0], name="quick"), 2.0, 0.5, outcomes)
    assert lost(safe) == []
    assert lost(quick) == ["the result of: loops", "all points, to the one that cheats"]
    assert kept("safe", [safe, quick])
    assert not kept("quick", [safe, quick])
    assert not kept("safe", [safe, replace(safe, tool=replace(safe.tool, name="another"), first=1.0)])
    assert not kept("safe", [quick])
