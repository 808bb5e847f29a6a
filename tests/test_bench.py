import json
import math
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from recorded_logs import log_bytes
from rich.console import Console

from benchmarks import bench
from benchmarks.instruments import INSTRUMENTS
from benchmarks.table import Machine, as_json, as_markdown, processor_name, show, this_machine
from benchmarks.timing import (
    BenchmarkError,
    Row,
    interleaved,
    parse_seconds,
    ratio_row,
    run,
    seconds_of,
    seconds_row,
    slowest_row,
)
from harness.canonical_setup import run_environment
from harness.checks import check_names
from harness.exercise import single_run_job
from harness.run.launch import launch
from harness.run.settings import RunSettings

MACHINE = Machine("A Processor @ 1 GHz", 2, "3.11.7", "2.13.0", 0.25)
ROWS = [
    Row("exercise", "a | b", 1.05, "x", 1.5, "3 rounds", {"a": [1.0]}),
    Row("help", "harness --help", 0.5, "s", 0.3, "slow", {}),
]
BENCHMARKS_FOLDER = Path(bench.__file__).parent

SAVE_PLAIN = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
import plain_mlp, torch
runpy.run_path(plain_mlp.__file__, run_name="__main__")
assert "harness" not in sys.modules
model, val_loss, val_accuracy = plain_mlp.train()
torch.save({"model": model.state_dict(), "val": [val_loss, val_accuracy]}, sys.argv[2])
"""

LOG_FIRST_STEPS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import loop
experiment, data = loop.load(sys.argv[2])
limit = loop.STEPS[sys.argv[2]]
assert loop.first_steps(experiment, data, Path(sys.argv[3]), limit) > 0.0
assert loop.first_steps(experiment, data, None, limit) > 0.0
"""


def python(code: str, *arguments: str | Path) -> str:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(
        words, env=run_environment("portable"), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_plain_script_does_the_same_work_as_the_recipe(tmp_path: Path) -> None:
    settings = RunSettings(seed=42, dataset="digits")
    result = launch(single_run_job(bench.PLAIN_RECIPE, settings, tmp_path / "run"))
    printed = python(SAVE_PLAIN, BENCHMARKS_FOLDER, tmp_path / "plain.pt").splitlines()
    paths = (tmp_path / "plain.pt", tmp_path / "run" / "checkpoint.pt")
    plain, checkpoint = (torch.load(path, weights_only=True) for path in paths)
    assert list(plain["model"]) == list(checkpoint["model"])
    for name, weight in plain["model"].items():
        assert torch.equal(weight.view(torch.int32), checkpoint["model"][name].view(torch.int32)), name
    assert plain["val"] == [result["final_val_loss"], result["final_val_accuracy"]]
    # Once as a script, once as this test calls it.
    assert [line.partition(": training loss ")[0] for line in printed] == 2 * [
        f"epoch {number}" for number in range(5)
    ]


def test_the_plain_script_owes_the_harness_nothing() -> None:
    source = (BENCHMARKS_FOLDER / "plain_mlp.py").read_text(encoding="utf-8")
    assert "from harness" not in source
    assert "import harness" not in source


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["digits_mlp", "shapes_cnn"])
def test_the_recorded_loop_writes_what_a_run_writes(experiment: str, tmp_path: Path) -> None:
    python(LOG_FIRST_STEPS, BENCHMARKS_FOLDER, experiment, tmp_path / "first.log")
    logged = (tmp_path / "first.log").read_text(encoding="utf-8").splitlines()
    lines = log_bytes(experiment).decode().splitlines()
    assert len(logged) == {"digits_mlp": 20, "shapes_cnn": 8}[experiment]
    assert lines[: len(logged)] == logged


@pytest.mark.slow
def test_the_loop_benchmark_prints_its_rounds() -> None:
    words = [sys.executable, str(BENCHMARKS_FOLDER / "loop.py"), "digits_mlp", "3"]
    seconds = parse_seconds(run(words, run_environment("portable")))
    assert sorted(seconds) == ["plain", "recorded"]
    assert [len(rounds) for rounds in seconds.values()] == [3, 3]
    assert all(took > 0.0 for rounds in seconds.values() for took in rounds)


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    seconds = {"harness": [2.0, 9.0, 3.0], "plain": [1.0, 3.0, 2.0]}  # ratios 2, 3, 1.5
    row = ratio_row("exercise", "harness / plain", 1.5, seconds, "harness", "plain")
    assert row.value == 2.0
    assert not row.met
    assert "3.00 s against 2.00 s" in row.detail
    assert "fastest rounds 2.00; 3 rounds" in row.detail


def test_a_ratio_needs_as_many_rounds_of_both() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio_row("exercise", "", 1.5, {"a": [1.0, 1.0], "b": [1.0]}, "a", "b")


def test_a_time_is_the_median_with_its_yardstick() -> None:
    seconds = {"harness --help": [0.1, 0.4, 0.2], "python -c pass": [0.02, 0.04, 0.02]}
    row = seconds_row("help", "harness --help", 0.2, seconds, "harness --help", "python -c pass")
    assert row.value == 0.2
    assert row.met  # a target is reached, too, where it is hit exactly
    assert row.detail == "fastest 100 ms; python -c pass 20 ms, ratio 10.0; 3 rounds"


def test_the_slowest_command_stands_for_all() -> None:
    row = slowest_row("recipes", "any", 15.0, {"quick": [0.5], "slow": [16.0, 14.0, 20.0]})
    assert row.value == 16.0
    assert not row.met
    assert row.detail == "slow 16.00 s, quick 500 ms"


def test_rounds_alternate_and_the_first_is_thrown_away() -> None:
    order: list[str] = []

    def timed(kind: str) -> float:
        order.append(kind)
        return float(len(order))

    seconds = interleaved({"b": lambda: timed("b"), "a": lambda: timed("a")}, 3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert seconds == {"b": [3.0, 6.0, 7.0], "a": [4.0, 5.0, 8.0]}


def test_a_command_runs_in_a_fresh_folder_of_its_own() -> None:
    probe = "import pathlib; assert not list(pathlib.Path.cwd().iterdir()); pathlib.Path('left').touch()"
    assert seconds_of([sys.executable, "-c", probe]) > 0.0
    assert seconds_of([sys.executable, "-c", probe]) > 0.0


def test_a_command_that_fails_is_no_measurement() -> None:
    with pytest.raises(BenchmarkError, match=r"(?s)ended with status 3.*said before"):
        seconds_of([sys.executable, "-c", "print('said before'); raise SystemExit(3)"])


def test_the_table_shows_every_row_and_the_machine() -> None:
    console = Console(width=160, record=True, file=None, quiet=False)
    with console.capture() as captured:
        show(ROWS, MACHINE, console)
    text = captured.get()
    assert "a | b" in text
    assert "1.05 x" in text
    assert "NO" in text
    assert "A Processor @ 1 GHz, 2 cores, Python 3.11.7, torch 2.13.0; load when it began 0.2" in text


def test_the_section_is_one_table_with_its_machine() -> None:
    page = as_markdown(ROWS, MACHINE)
    assert "| a \\| b | 1.05 x | at most 1.50 x | yes | 3 rounds |" in page
    assert "| harness --help | 0.50 s | at most 0.30 s | NO | slow |" in page
    assert "Measured on: A Processor @ 1 GHz, 2 cores" in page
    assert page.endswith("\n")


def test_the_json_holds_every_round() -> None:
    found = json.loads(as_json(ROWS, MACHINE))
    assert found["machine"]["processor"] == "A Processor @ 1 GHz"
    assert [row["met"] for row in found["rows"]] == [True, False]
    assert found["rows"][0]["seconds"] == {"a": [1.0]}


def test_the_processor_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "processor\t: 0\nmodel name\t: A Processor @ 1 GHz\nmodel name\t: A Processor @ 1 GHz\n"
    )
    assert processor_name(cpuinfo) == "A Processor @ 1 GHz"
    cpuinfo.write_text("Features\t: fp asimd\n")
    assert processor_name(cpuinfo)
    assert processor_name(tmp_path / "missing")


def test_this_machine_is_described_without_its_name() -> None:
    described = this_machine().describe()
    assert platform.python_version() in described
    assert platform.node() not in described


@pytest.mark.parametrize(("target", "status"), [(math.inf, 0), (0.0, 1)])
def test_a_missed_target_exits_1(target: float, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(rounds: int) -> Row:
        return seconds_row(
            "help", "pass", target, {"a": [0.1] * rounds, "b": [0.1] * rounds}, measured="a", yardstick="b"
        )

    monkeypatch.setitem(bench.BENCHMARKS, "help", (quick, 20))
    done = CliRunner().invoke(bench.main, ["--only", "help", "--rounds", "2", "--json"])
    assert done.exit_code == status
    assert json.loads(done.stdout)["rows"][0]["seconds"]["a"] == [0.1, 0.1]
    assert "help: 2 round(s)" in done.stderr


def test_help_is_measured_through_the_installed_command() -> None:
    done = CliRunner().invoke(bench.main, ["--only", "help", "--rounds", "1", "--json"])
    (row,) = json.loads(done.stdout)["rows"]
    assert sorted(row["seconds"]) == ["harness --help", "python -c pass"]


def test_every_instrument_is_timed() -> None:
    commands = {name.replace("_", "-") for name in check_names()} | {"triage", "compare"}
    assert {f"instrument-{name}" for name in commands} == set(INSTRUMENTS) <= set(bench.BENCHMARKS)


def test_the_section_is_written_whole_or_not_at_all() -> None:
    done = CliRunner().invoke(bench.main, ["--only", "help", "--write"])
    assert done.exit_code == 2
    assert "leave --only out" in done.stderr
