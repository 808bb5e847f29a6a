import ast
import contextlib
import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bench_peers import (
    CHECKS,
    HandedIn,
    Kind,
    Lost,
    Measured,
    Outcome,
    Tool,
    Verdict,
    activated,
    check50_verdict,
    gradescope_verdict,
    kept,
    lost,
    measure,
    nbgrader_verdict,
    our_verdict,
    run_watched,
    student_notebook,
    written,
)
from grader.syntax.program import tree_digest

# What the tools themselves wrote, in a run of the benchmark.
RESULTS = Path(__file__).with_name("peer_results")
PYTHON = Path(sys.executable)


def result(name: str) -> str:
    return (RESULTS / name).read_text(encoding="utf-8")


def handed_in(student: str, kind: Kind) -> HandedIn:
    hostile = "" if kind in ("right", "wrong") else "import os\n"
    return HandedIn(student, kind, f"{hostile}EPOCHS = 5\n", hostile, "ab12  checkpoint.pt\n", b"tarball")


CLASS = [handed_in("ada", "right"), handed_in("emmy", "wrong"), handed_in("lucifer", "loops")]


def test_ten_different_experiments_are_handed_in() -> None:
    ten = written()
    assert [one.student for one in ten] == sorted({one.student for one in ten})
    assert sorted(one.kind for one in ten) == ["cheats", "exits", "loops", *["right"] * 5, *["wrong"] * 2]
    for one in ten:
        ast.parse(one.source)
        assert one.source.startswith(one.hostile)
    assert len({tree_digest(one.source) for one in ten}) == 10  # so none of ours shares a replay


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (result("gradescope_wrong.json"), Verdict(4.0, 10.0)),
        (result("otter_right.json"), Verdict(10.0, 10.0)),
        ("", Lost("no results.json")),
    ],
)
def test_results_of_gradescopes_form_are_added_up(text: str, verdict: Verdict | Lost) -> None:
    assert gradescope_verdict(text) == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (result("check50_cheats.json"), Verdict(4, 4)),
        (result("check50_exits.json"), Verdict(1, 4)),
        (result("check50_error.json"), Lost("MissingFilesError")),
        ("", Lost("no output")),
    ],
)
def test_checks_that_passed_are_counted(text: str, verdict: Verdict | Lost) -> None:
    assert check50_verdict(text) == verdict


def test_a_zero_of_nbgrader_is_none_where_nothing_was_graded() -> None:
    table = result("nbgrader_grades.csv")
    students = [row["student_id"] for row in csv.DictReader(io.StringIO(table))]
    assert students == ["ada", "charles", "edsger", "elliot"]
    assert nbgrader_verdict(table, "ada", graded=True) == Verdict(10.0, 10.0)
    assert nbgrader_verdict(table, "edsger", graded=True) == Verdict(4.0, 10.0)
    unfinished = nbgrader_verdict(table, "elliot", graded=False)
    assert unfinished == Lost("not graded; its gradebook says 0 of 10")
    assert nbgrader_verdict(table, "nobody", graded=False) == Lost("not graded; its gradebook says no row")


def test_our_points_for_the_fix_are_read() -> None:
    scores = result("trainwreck_scores.json")
    assert our_verdict(scores, "ada") == Verdict(20.0, 20.0)
    assert our_verdict(scores, "charles") == Verdict(None, 20.0)
    assert our_verdict(scores, "elliot") == Verdict(0.0, 20.0)
    assert our_verdict(scores, "nobody") == our_verdict("", "ada") == Lost("no row in scores.json")


def test_a_hostile_notebook_has_its_lines_where_the_checks_run() -> None:
    for tool in ("nbgrader", "otter"):
        handed_out = CHECKS / tool / "huge_lr.ipynb"
        honest, hostile = (
            json.loads(student_notebook(handed_out, one))["cells"] for one in (CLASS[0], CLASS[2])
        )
        assert [cell["source"] for cell in honest][1] == "%%writefile experiment.py\nEPOCHS = 5\n"
        assert [cell["id"] for cell in hostile] == [
            *("intro", "experiment", "own"),
            *(cell["id"] for cell in honest[2:]),
        ]
        assert hostile[2]["source"] == "import os\n"
        assert "nbgrader" not in hostile[2]["metadata"]


def test_a_command_is_ended_at_its_limit(tmp_path: Path) -> None:
    seconds, status, _ = run_watched([PYTHON, "-c", "while True: pass"], tmp_path, os.environ, 0.5)
    assert status is None
    assert seconds >= 0.5
    code = "import os, sys; print(os.getcwd()); sys.exit(3)"
    _, status, output = run_watched([PYTHON, "-c", code], tmp_path, os.environ, 60.0)
    assert (status, output.strip()) == (3, str(tmp_path))


def test_nothing_that_a_command_started_outlives_it(tmp_path: Path) -> None:
    left = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {left!r}], stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode())\n"
    )
    _, status, output = run_watched([PYTHON, "-c", code], tmp_path, os.environ, 120.0)
    assert status == 0
    # A process that has ended has no environment, though it may still wait to be collected.
    with contextlib.suppress(OSError):
        assert Path(f"/proc/{int(output)}/environ").read_bytes() == b""


def copying(together: bool) -> Tool:
    """Return a tool that copies what stands in a student's file as its verdict."""
    code = (
        "import sys\n"
        "for name in sys.argv[1:]:\n"
        "    kind = open(name).read()\n"
        "    if kind != 'loops': open(name + '.result', 'w').write(kind)\n"
    )

    def prepare(_: Path, folder: Path, class_: Sequence[HandedIn]) -> None:
        folder.mkdir(parents=True)
        for one in class_:
            (folder / one.student).write_text(one.kind)

    def words(python: Path, folder: Path, student: str) -> Sequence[str | Path]:
        return (
            python,
            "-c",
            code,
            *([path for path in folder.iterdir() if not path.suffix] if together else [student]),
        )

    def verdict(folder: Path, student: str) -> Verdict | Lost:
        path = folder / f"{student}.result"
        return Verdict(float(path.read_text() == "right"), 1.0) if path.exists() else Lost("no copy")

    return Tool(
        "copies", "copies==1.0", "nothing", "by copying", "1", prepare, words, verdict, together=together
    )


@pytest.mark.parametrize("together", [False, True])
def test_a_tool_grades_the_honest_twice_and_then_the_hostile(
    together: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = measure(copying(together), PYTHON, CLASS, tmp_path / "tool")
    assert sorted((one.kind, one.verdict) for one in measured.outcomes) == [
        ("loops", Lost("no copy")),
        ("right", Verdict(1.0, 1.0)),
        ("wrong", Verdict(0.0, 1.0)),
    ]
    assert measured.first > 0.0
    assert measured.again > 0.0
    # A tool that grades a class in one command also grades the honest ones beside the hostile ones.
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("copies: ada, emmy, lucifer:" if together else "copies: lucifer:")
    assert len(said) == (3 if together else 5)


def column(name: str, *outcomes: Outcome, isolates: bool, first: float) -> Measured:
    tool = replace(copying(False), name=name, pin=f"{name}==1", around="a | b", isolates=isolates)
    return Measured(tool, first, 0.5, outcomes)


SAFE = column(
    "safe",
    Outcome("right", Verdict(10.0, 10.0), True),
    Outcome("loops", Verdict(0.0, 10.0), True),
    Outcome("cheats", Verdict(None, 10.0), True),
    isolates=True,
    first=3.0,
)
QUICK = column(
    "quick",
    Outcome("right", Verdict(10.0, 10.0), True),
    Outcome("loops", Lost("nothing"), False),
    Outcome("cheats", Verdict(10.0, 10.0), True),
    isolates=False,
    first=2.0,
)


def test_what_is_lost_are_results_and_points_for_a_cheat() -> None:
    assert lost(SAFE) == []
    assert lost(QUICK) == ["the result of: loops", "all points, to the one that cheats"]


def test_ours_must_be_the_fastest_that_isolates_and_lose_nothing_alone() -> None:
    assert kept("safe", [SAFE, QUICK])
    assert not kept("quick", [SAFE, QUICK])
    assert not kept("safe", [SAFE, replace(SAFE, tool=replace(SAFE.tool, name="another"), first=1.0)])
    assert not kept("safe", [SAFE, replace(SAFE, tool=replace(SAFE.tool, name="whole", isolates=False))])
    assert not kept("safe", [QUICK])


def test_an_environment_is_activated_without_what_leads_out_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("PYTHONPATH", "JUPYTER_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    found = activated(Path("/envs/otter/bin/python"), tmp_path)
    assert found["PATH"] == f"/envs/otter/bin{os.pathsep}{os.environ['PATH']}"
    assert found["VIRTUAL_ENV"] == "/envs/otter"
    assert "/elsewhere" not in found.values()
    assert found["JUPYTER_DATA_DIR"].startswith(str(tmp_path))
