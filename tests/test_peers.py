import ast
import contextlib
import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.peers import environments
from benchmarks.peers.check50 import Check50, check50_verdict
from benchmarks.peers.environments import PINS, activated, ready_environment
from benchmarks.peers.gradescope import GradescopeUtils, gradescope_verdict
from benchmarks.peers.measure import Measured, Outcome, measure, seconds_alone
from benchmarks.peers.nbgrader import nbgrader_verdict
from benchmarks.peers.notebook import student_notebook
from benchmarks.peers.ours import Trainwreck, our_verdict
from benchmarks.peers.submissions import HandedIn, Kind, written
from benchmarks.peers.table import as_markdown, findings, kept, lost, outcome_cell, rows, show
from benchmarks.peers.tool import CHECKS, TOOL_LIMIT_SECONDS, Command, Lost, Verdict
from benchmarks.peers.watch import run_watched
from benchmarks.table import Machine
from benchmarks.timing import BenchmarkError
from grader.syntax.parse import tree_digest

# What the tools themselves wrote, in a run of the benchmark.
RESULTS = Path(__file__).with_name("peer_results")
MACHINE = Machine("A Processor @ 1 GHz", 2, "3.11.7", "2.13.0", 0.25)


def result(name: str) -> str:
    return (RESULTS / name).read_text(encoding="utf-8")


def handed_in(student: str, kind: Kind) -> HandedIn:
    hostile = "" if kind in ("right", "wrong") else "import os\n"
    return HandedIn(student, kind, f"{hostile}EPOCHS = 5\n", hostile, "ab12  checkpoint.pt\n", b"tarball")


CLASS = [handed_in("ada", "right"), handed_in("emmy", "wrong"), handed_in("lucifer", "loops")]


def test_ten_different_experiments_are_handed_in() -> None:
    ten = written()
    assert len({one.student for one in ten}) == len({one.source for one in ten}) == 10
    assert [one.kind for one in ten if one.honest].count("right") == 5
    assert sorted(one.kind for one in ten if not one.honest) == ["cheats", "exits", "loops"]
    for one in ten:
        ast.parse(one.source)
        assert one.source.startswith(one.hostile)
    # Each is a program of its own: none of ours is graded by another's replay.
    assert len({tree_digest(one.source) for one in ten}) == 10


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


def test_of_ours_the_points_for_the_fix_are_compared() -> None:
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


def test_files_are_laid_out_as_the_tools_expect_them(tmp_path: Path) -> None:
    for tool, place in (
        (GradescopeUtils(Path("python"), ""), "gradescope/ada/submission"),
        (Check50(Path("python"), ""), "check50/handed_in/ada"),
    ):
        tool.prepare(tmp_path / place.partition("/")[0], CLASS)
        found = {path.name: path.read_text() for path in (tmp_path / place).iterdir()}
        assert found == {"experiment.py": "EPOCHS = 5\n", "checkpoint.pt.sha256": "ab12  checkpoint.pt\n"}
    Trainwreck(2).prepare(tmp_path / "ours", CLASS)
    assert (tmp_path / "ours" / "submissions" / "ada_huge_lr.tar.gz").read_bytes() == b"tarball"


def test_what_never_ends_is_ended(tmp_path: Path) -> None:
    ended = run_watched([sys.executable, "-c", "while True: pass"], tmp_path, os.environ, limit=0.5)
    assert ended.status is None
    assert ended.seconds >= 0.5


def test_nothing_that_a_command_started_outlives_it(tmp_path: Path) -> None:
    left = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
    code = (
        "import subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {left!r}], stdout=subprocess.PIPE)\n"
        "print(child.stdout.readline().decode())\n"
    )
    ended = run_watched([sys.executable, "-c", code], tmp_path, os.environ, limit=120.0)
    assert ended.status == 0
    # A process that has ended has no environment, though it may still wait to be collected.
    environment = Path(f"/proc/{int(ended.output)}/environ")
    with contextlib.suppress(OSError):
        assert environment.read_bytes() == b""


def test_what_ends_is_not_ended(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); sys.exit(3)"
    ended = run_watched([sys.executable, "-c", code], tmp_path, os.environ, limit=60.0)
    assert (ended.status, ended.output.strip()) == (3, str(tmp_path))


@dataclass(frozen=True)
class Copies:
    """A tool that gives what is written in a file of the student's; `together`: one command for the class."""

    together: bool
    name: str = "copies 1.0"
    isolates: bool = False
    around: str = "nothing"
    grades: str = "by copying"
    points: str = "1"

    def prepare(self, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        folder.mkdir(parents=True)
        for one in handed_in:
            (folder / one.student).write_text(one.kind)

    def commands(self, folder: Path, students: Sequence[str]) -> list[Command]:
        code = (
            "import sys\n"
            "for name in sys.argv[1:]:\n"
            "    kind = open(name).read()\n"
            "    if kind != 'loops': open(name + '.result', 'w').write(kind)\n"
        )
        groups = [tuple(students)] if self.together else [(name,) for name in students]
        return [Command(group, (sys.executable, "-c", code, *group), folder, os.environ) for group in groups]

    def verdict(self, folder: Path, student: str) -> Verdict | Lost:
        path = folder / f"{student}.result"
        return Verdict(float(path.read_text() == "right"), 1.0) if path.exists() else Lost("no copy")


@pytest.mark.parametrize("together", [False, True])
def test_a_tool_grades_the_honest_twice_and_then_the_hostile(together: bool, tmp_path: Path) -> None:
    said: list[str] = []
    measured = measure(Copies(together), CLASS, tmp_path / "tool", said.append)
    assert sorted((one.kind, one.verdict) for one in measured.outcomes) == [
        ("loops", Lost("no copy")),
        ("right", Verdict(1.0, 1.0)),
        ("wrong", Verdict(0.0, 1.0)),
    ]
    assert measured.first > 0.0
    assert measured.again > 0.0
    # What is graded in one command is graded beside the hostile ones once more.
    assert said[-1].startswith("copies 1.0: ada, emmy, lucifer:" if together else "copies 1.0: lucifer:")
    assert len(said) == (3 if together else 5)
    assert seconds_alone(Copies(together), CLASS, tmp_path / "alone", said.append) > 0.0


def test_a_tool_that_is_set_up_wrongly_is_not_measured(tmp_path: Path) -> None:
    # It loses whatever is handed in as `loops`, and here that is said to be honest.
    odd = replace(CLASS[2], hostile="")
    with pytest.raises(BenchmarkError, match="no result for lucifer: no copy"):
        measure(Copies(True), [CLASS[0], odd], tmp_path, lambda line: None)


def column(name: str, *, isolates: bool, first: float, outcomes: dict[Kind, Outcome]) -> Measured:
    return Measured(name, isolates, "a | b", "by hand", "10", first, 0.5, tuple(outcomes.values()))


def outcome(kind: Kind, verdict: Verdict | Lost, *, returned: bool = True) -> Outcome:
    return Outcome(kind, verdict, returned)


SAFE = column(
    "safe 1",
    isolates=True,
    first=3.0,
    outcomes={
        "right": outcome("right", Verdict(10.0, 10.0)),
        "loops": outcome("loops", Verdict(0.0, 10.0)),
        "cheats": outcome("cheats", Verdict(None, 10.0)),
    },
)
QUICK = column(
    "quick 2",
    isolates=False,
    first=2.0,
    outcomes={
        "right": outcome("right", Verdict(10.0, 10.0)),
        "loops": outcome("loops", Lost("nothing"), returned=False),
        "cheats": outcome("cheats", Verdict(10.0, 10.0)),
    },
)


def test_a_cell_says_what_became_of_a_submission() -> None:
    assert outcome_cell(outcome("exits", Verdict(0.0, 10.0))) == "0 of 10"
    assert outcome_cell(outcome("exits", Verdict(14.5, 20.0))) == "14.5 of 20"
    assert outcome_cell(outcome("exits", Verdict(None, 20.0))) == "no points: left to the instructor"
    assert outcome_cell(outcome("exits", Lost("no output"))) == "no result: no output"
    assert outcome_cell(outcome("loops", Lost(""), returned=False)).startswith(
        "never returned: ended after 120 s"
    )


def test_what_is_lost_are_results_and_points_for_a_cheat() -> None:
    assert lost(SAFE) == []
    assert lost(QUICK) == ["the result of: loops", "all points, to the one that cheats"]


def test_the_table_tells_the_fastest_and_who_lost_nothing() -> None:
    assert findings([SAFE, QUICK]) == [
        "The fastest of all: quick 2, 2.00 s a submission.",
        "The fastest that isolates: safe 1, 3.00 s; it is the only one here.",
        "With nothing lost: safe 1.",
    ]
    slower = replace(SAFE, name="slow 3", first=4.0)
    assert findings([slower, SAFE])[1].endswith("safe 1, 3.00 s; it is one of 2.")
    assert findings([QUICK])[1:] == ["With nothing lost: none."]


def test_ours_must_be_the_fastest_that_isolates_and_lose_nothing_alone() -> None:
    assert kept("safe 1", [SAFE, QUICK])
    assert not kept("quick 2", [SAFE, QUICK])
    assert not kept("safe 1", [SAFE, replace(SAFE, name="another", first=1.0)])
    assert not kept("safe 1", [SAFE, replace(SAFE, name="as_whole", isolates=False)])
    assert not kept("safe 1", [replace(SAFE, isolates=False)])


def test_the_tools_have_the_limit_that_the_page_tells() -> None:
    checks = (CHECKS / "check50" / "checks.py").read_text(encoding="utf-8")
    course = (CHECKS / "nbgrader" / "nbgrader_config.py").read_text(encoding="utf-8")
    assert f"TIMEOUT_SECONDS = {TOOL_LIMIT_SECONDS}\n" in checks
    assert f"timeout = {TOOL_LIMIT_SECONDS}\n" in course


def test_the_table_has_a_column_for_each_tool() -> None:
    found = {row[0]: row[1:] for row in rows([SAFE, QUICK])}
    assert found["wall time a submission"] == ("3.00 s", "2.00 s")
    assert found["right fixes with all points"] == ("1 of 1", "1 of 1")
    assert found["lost"][0] == "nothing"
    console = Console(width=200)
    with console.capture() as captured:
        show([SAFE, QUICK], ["A note."], console)
    assert "never returned" in captured.get()
    assert "A note." in captured.get()


def test_the_section_has_its_date_its_machine_and_its_limits() -> None:
    text = as_markdown([SAFE, QUICK], ["A note."], MACHINE, "2030-01-02")
    assert "|  | safe 1 | quick 2 |\n| --- | --- | --- |\n" in text
    assert "| what is around a submission | a \\| b | a \\| b |" in text
    assert "Measured on 2030-01-02: A Processor @ 1 GHz, 2 cores" in text
    assert f"are {TOOL_LIMIT_SECONDS} s here" in text
    assert "after 120 s" in text
    assert "{" not in text


def test_an_environment_is_activated_without_what_leads_out_of_it() -> None:
    base = {"PATH": "/bin", "PYTHONPATH": "/x", "JUPYTER_PATH": "/y", "HOME": "/h"}
    assert activated(Path("/envs/otter/bin/python"), base) == {
        "PATH": f"/envs/otter/bin{os.pathsep}/bin",
        "VIRTUAL_ENV": "/envs/otter",
        "HOME": "/h",
    }


def test_an_environment_is_kept_until_its_pin_or_the_suite_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(environments, "run", commands.append)  # an installation takes minutes and a network
    python = ready_environment("check50", tmp_path)
    assert python == tmp_path / "check50" / "bin" / "python"
    made, installed = commands
    assert made[1:3] == ["-m", "venv"]
    assert installed[-2:] == [PINS["check50"], str(tmp_path / "kit.tar.gz")]
    commands.clear()
    ready_environment("check50", tmp_path)
    assert commands == []
    marker = tmp_path / "check50.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "kit": "another"}))
    ready_environment("check50", tmp_path)
    ((*_, option, last),) = commands
    assert (option, last) == ("--force-reinstall", str(tmp_path / "kit.tar.gz"))
    commands.clear()
    monkeypatch.setitem(PINS, "check50", "check50==3.6")
    ready_environment("check50", tmp_path)
    assert [words[-2] for words in commands[1:]] == ["check50==3.6"]


def test_an_environment_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "otter").mkdir()
    with pytest.raises(BenchmarkError, match="name another folder with --envs"):
        ready_environment("otter", tmp_path)
