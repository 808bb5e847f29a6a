import platform
import subprocess
import sys
from pathlib import Path

import click
import pytest
import torch
from click.testing import CliRunner
from helpers.made_up_class import make_row
from helpers.recorded_logs import log_bytes

from benchmarks import bench, bench_class, measure
from benchmarks.measure import (
    HEADINGS,
    PAGE,
    ROOT,
    Row,
    interleaved,
    markdown_table,
    ratio_row,
    this_machine,
    write_section,
)
from grader.score.verdict import lost
from harness.canonical_setup import run_environment
from harness.run.settings import RunSettings
from harness.student.runs import launch, single_run_job

SAVE_PLAIN = """
import sys
sys.path.insert(0, sys.argv[1])
import plain_mlp, torch
model, val_loss, val_accuracy = plain_mlp.train()
assert "harness" not in sys.modules
torch.save({"model": model.state_dict(), "val": [val_loss, val_accuracy]}, sys.argv[2])
"""

LOG_FIRST_STEPS = """
import sys
from pathlib import Path
from benchmarks import loop
experiment, data = loop.load(sys.argv[1])
for log in (Path(sys.argv[2]), None):
    assert loop.first_steps(experiment, data, log, loop.STEPS[sys.argv[1]]) > 0.0
"""


def python(code: str, *arguments: str | Path) -> None:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    environment = run_environment("portable") | {"PYTHONPATH": str(ROOT)}
    subprocess.run(words, env=environment, check=True, capture_output=True, timeout=120)


@pytest.mark.slow
def test_the_plain_script_does_the_same_work_as_the_recipe(tmp_path: Path) -> None:
    settings = RunSettings(seed=42, dataset="digits")
    result = launch(single_run_job(bench.RECIPE, settings, tmp_path / "run"))
    python(SAVE_PLAIN, bench.PLAIN[0].parent, tmp_path / "plain.pt")
    paths = (tmp_path / "plain.pt", tmp_path / "run" / "checkpoint.pt")
    plain, checkpoint = (torch.load(path, weights_only=True) for path in paths)
    assert list(plain["model"]) == list(checkpoint["model"])
    for name, weight in plain["model"].items():
        assert torch.equal(weight.view(torch.int32), checkpoint["model"][name].view(torch.int32)), name
    assert plain["val"] == [result["final_val_loss"], result["final_val_accuracy"]]


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["digits_mlp", "shapes_cnn"])
def test_the_recorded_loop_writes_what_a_run_writes(experiment: str, tmp_path: Path) -> None:
    python(LOG_FIRST_STEPS, experiment, tmp_path / "first.log")
    logged = (tmp_path / "first.log").read_text(encoding="utf-8").splitlines()
    assert len(logged) == {"digits_mlp": 20, "shapes_cnn": 8}[experiment]
    assert log_bytes(experiment).decode().splitlines()[: len(logged)] == logged


def test_rounds_alternate_and_a_ratio_is_the_median_of_theirs() -> None:
    order: list[str] = []

    def timed(kind: str) -> float:
        order.append(kind)
        return float(len(order))

    seconds = interleaved({"b": lambda: timed("b"), "a": lambda: timed("a")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]  # the first round does not count
    assert interleaved({"a": lambda: timed("c")}, 1, warm_up=2) == {"a": [11.0]}
    assert seconds == {"b": [3.0, 6.0, 7.0], "a": [4.0, 5.0, 8.0]}
    seconds = {"harness": [2.0, 9.0, 3.0], "plain": [1.0, 3.0, 2.0]}  # ratios 2, 3, 1.5
    row = ratio_row("harness / plain", 1.5, seconds, "harness", "plain")
    assert (row.value, row.met) == (2.0, False)
    assert row.details == "3.00 s against 2.00 s; ratio of the fastest rounds 2.00; 3 rounds"


def test_the_page_shows_every_row_and_the_machine_without_its_name(tmp_path: Path) -> None:
    rows = [Row("a | b", 1.05, "x", 1.5, "3 rounds"), Row("harness --help", 0.5, "s", 0.3, "slow")]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench: measured -->\nold\n<!-- end -->\nafter\n")
    write_section("bench", markdown_table(HEADINGS, [row.cells() for row in rows]), page)
    lines = page.read_text().splitlines()
    assert lines[:2] + lines[-2:] == ["before", "<!-- bench: measured -->", "<!-- end -->", "after"]
    assert "| a \\| b | 1.05 x | at most 1.50 x | yes | 3 rounds |" in lines
    assert "| harness --help | 0.50 s | at most 0.30 s | NO | slow |" in lines
    assert platform.node() not in this_machine()
    for name in ("bench", "class"):
        assert f"<!-- {name}: measured -->" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("target", "status"), [(1.0, 0), (0.0, 1)])
def test_a_missed_target_exits_with_1(target: float, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = bench.Benchmark(lambda rounds: Row("t", rounds / 10, "s", target, ""), 20)
    monkeypatch.setitem(bench.BENCHMARKS, "triage", measured)
    done = CliRunner().invoke(bench.main, ["--only", "triage", "--rounds", "2"])
    assert done.exit_code == status
    assert "0.20 s" in done.stdout


@pytest.mark.parametrize(
    ("command", "words", "status"),
    [(bench.main, [], 2), (bench.main, ["--only", "replay"], 2), (bench.main, ["--only", "triage"], 0),
     (bench_class.main, [], 2)],
)  # fmt: skip
def test_without_a_sandbox_what_needs_one_ends_at_once(
    command: click.Command, words: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "sandbox_problem", lambda: "The sandbox needs bubblewrap.")
    measured: list[int] = []

    def triage(rounds: int) -> Row:
        measured.append(rounds)
        return Row("t", 1.0, "s", 2.0, "")

    for name, one in bench.BENCHMARKS.items():
        monkeypatch.setitem(bench.BENCHMARKS, name, one._replace(measured=triage))
    done = CliRunner().invoke(command, words)
    assert done.exit_code == status
    assert measured == ([] if status else [3])
    assert done.stderr == "Error: The sandbox needs bubblewrap.\n" or not status


@pytest.mark.parametrize(
    ("kind", "edit", "correct", "log", "wrong"),
    [
        ("honest", "right", 12.0, 9.0, 0),
        ("honest", "right", 12.0, 0.0, 1),
        ("honest", "right", 4.0, 9.0, 1),
        ("honest", "masked", 0.0, 0.0, 0),  # its run earns nothing, because it fixes nothing
        ("honest", "masked", 12.0, 9.0, 1),
        ("forged", "right", 12.0, 0.0, 0),
        ("forged", "right", 12.0, 9.0, 1),
        ("truncated", "right", 12.0, 9.0, 1),
    ],
)
def test_a_class_is_measured_only_if_its_scores_are_as_planned(
    kind: bench_class.Kind, edit: str, correct: float, log: float, wrong: int
) -> None:
    planned = bench_class.Planned("ada", "a1", edit, kind)
    changes = {
        "fix.correct": lost("correct", "", 12.0, "", "", points=correct),
        "reproducibility.fixed_log": lost("fixed_log", "", 9.0, "", "", points=log),
    }
    rows = {planned.name: make_row(planned.name, "ada", "a1", changes)}
    assert len([*bench_class.problems([planned], rows)]) == wrong
    assert [*bench_class.problems([planned], {})] == ["ada_a1 has no row"]
