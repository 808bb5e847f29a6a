"""`make bench`: measure the time that the harness and the grader take, as ratios that must not exceed a target.

The exit status is 1 if a target is missed, and 2 if a benchmark needs a sandbox that does not start on this machine.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import click

from benchmarks.measure import (
    PAGE,
    ROOT,
    BenchmarkError,
    Row,
    command_path,
    finish,
    interleaved,
    need_sandbox,
    ratio_row,
    run,
    seconds_of,
    seconds_row,
    this_machine,
)
from grader.course.examples import broken_workspace, example_submission
from grader.replay.replayer import Replayer, open_sandbox
from grader.replay.request import trusted_requests
from harness.canonical_setup import run_environment
from harness.data.loading import default_cache
from harness.recipes.catalogue import load_recipe
from harness.run.files import EXPERIMENT
from harness.run.settings import RunSettings

PLAIN = (Path(__file__).with_name("plain_mlp.py"),)
RECIPE = "huge_lr"  # plain_mlp.py contains the broken run of this recipe without the harness
SLOWEST = "around_the_wrapper"  # it trains twice, in two processes; only three experiments were compared
Seconds = Mapping[str, Sequence[float]]
Measured = Callable[[int], Row]  # measures a benchmark in the given number of rounds


class Benchmark(NamedTuple):
    """A benchmark, and the number of its repetitions (`rounds`)."""

    measured: Measured
    rounds: int
    in_sandbox: bool = False


def processes(
    row: Callable[[str, float, Seconds, str, str], Row], what: str, target: float,
    command: Sequence[str], yardstick: str, words: Sequence[object],
) -> Measured:  # fmt: skip
    """Return a benchmark that compares a command of this project with a Python process that gets these arguments."""

    def measured(rounds: int) -> Row:
        name, *options = command
        plain = [sys.executable, *words]
        seconds = interleaved(
            {
                name: lambda: seconds_of([command_path(name), *options]),
                yardstick: lambda: seconds_of(plain, run_environment("portable")),
            },
            rounds,
        )
        return row(what, target, seconds, name, yardstick)

    return measured


def start_up(command: str) -> Measured:
    """Return a benchmark that compares `<command> --help` with a Python process that does nothing."""
    return processes(seconds_row, f"{command} --help", 0.3, [command, "--help"], "python -c pass", ["-c", "pass"])


def in_child(*words: object) -> str:
    """Run `loop.py` with the environment variables for portable numerics, and return its output."""
    environment = run_environment("portable") | {"PYTHONPATH": str(ROOT)}
    return run([sys.executable, "-m", "benchmarks.loop", *words], environment)


def recording(experiment: str, label: str, target: float) -> Measured:
    """Return a benchmark that compares a training loop with recording to the same loop without recording."""

    def measured(rounds: int) -> Row:
        seconds = json.loads(in_child(experiment, rounds))
        return ratio_row(f"training loop with recording, {label} / without", target, seconds, "recorded", "plain")

    return measured


def replay(rounds: int) -> Row:
    """Compare the time of `grader score` for one submission with the time of the script without the harness.

    The submission has a new fix. The replays that all submissions share (broken run and reference fix) are in the
    cache.
    """
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as scratch:
        folder = Path(scratch)
        template = broken_workspace(RECIPE, folder / "template")
        healthy = load_recipe(RECIPE).healthy_source()
        students = iter([f"s{index}" for index in range(rounds + 2)])
        for index in range(rounds + 2):  # one more for the cache, and one more for the warm-up round
            source = healthy.replace("lr=0.1,", f"lr={0.08 + index / 1000},")
            work, out = folder / f"work{index}", folder / f"s{index}"
            example_submission(RECIPE, f"s{index}", source, template, work, out)

        def score() -> float:
            words = [command_path("grader"), "score", next(students), "--out", "reports"]
            start = perf_counter()
            run(words, {**os.environ, "TRAINWRECK_REPLAYS": str(folder / "replays")}, folder, allowed=(0, 1))
            return perf_counter() - start

        score()
        plain = [sys.executable, *PLAIN]
        seconds = interleaved(
            {"grader": score, "plain script": lambda: seconds_of(plain, run_environment("portable"))}, rounds
        )
    what = "grader score of one new submission (MLP), whole process / plain script"
    return ratio_row(what, 2.5, seconds, "grader", "plain script")


def verdict(recipe: str, label: str, target: float) -> Measured:
    """Return a benchmark of the time from saving the right fix to the verdict of `harness verify`.

    Each round uses a new copy of the workspace, so nothing is known about the fix.
    """

    def measured(rounds: int) -> Row:
        with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as scratch:
            template, copies = broken_workspace(recipe, Path(scratch) / "template"), count()
            healthy = load_recipe(recipe).healthy_source()

            def verify() -> float:
                work = Path(scratch) / f"work{next(copies)}"
                shutil.copytree(template, work)
                (work / recipe / EXPERIMENT).write_text(healthy, encoding="utf-8")
                return seconds_of([command_path("harness"), "verify", recipe, "--work", work])

            plain = [sys.executable, "-c", "import torch"]
            seconds = interleaved({"verify": verify, "python -c 'import torch'": lambda: seconds_of(plain)}, rounds)
        what = f"harness verify ({label}), from saving the fix to the verdict"
        return seconds_row(what, target, seconds, "verify", "python -c 'import torch'")

    return measured


def warm_replay(rounds: int) -> Row:
    """Compare a replay of the MLP and its evaluation in a running sandbox with its training in a running process."""
    seeds = count(1)
    with open_sandbox("warm", 1) as sandbox:
        replayer = Replayer(sandbox, default_cache())

        def replayed() -> float:
            settings = RunSettings(seed=next(seeds), dataset=load_recipe(RECIPE).dataset)
            request, _ = trusted_requests(load_recipe(RECIPE), settings)
            start = perf_counter()
            replay = replayer.make(request)
            seconds = perf_counter() - start
            if replay.status != "OK":
                raise BenchmarkError(f"A replay ended with {replay.status}: {replay.message}")
            return seconds

        seconds = interleaved({"replay": replayed, "training": lambda: float(in_child("training", RECIPE))}, rounds)
    return ratio_row("replay and evaluation (MLP), warm / its training", 1.5, seconds, "replay", "training")


BENCHMARKS = {
    "exercise": Benchmark(
        processes(
            ratio_row, "harness exercise (MLP), whole process / plain script", 1.5,
            ["harness", "exercise", RECIPE], "plain script", PLAIN,
        ), 7,
    ),
    "recording-mlp": Benchmark(recording("digits_mlp", "MLP", 1.3), 100),
    "recording-cnn": Benchmark(recording("shapes_cnn", "CNN", 1.10), 40),
    "harness-help": Benchmark(start_up("harness"), 20),
    "grader-help": Benchmark(start_up("grader"), 20),
    "triage": Benchmark(
        processes(
            seconds_row, "harness triage (MLP)", 15.0,
            ["harness", "triage", RECIPE], "python -c 'import torch'", ["-c", "import torch"],
        ), 3,
    ),
    "verdict-mlp": Benchmark(verdict(RECIPE, "MLP", 3.0), 5),
    "verdict-slowest": Benchmark(verdict(SLOWEST, "two processes", 6.0), 3),
    "replay": Benchmark(replay, 3, in_sandbox=True),
    "warm-replay": Benchmark(warm_replay, 15, in_sandbox=True),
}  # fmt: skip


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    help="The number of rounds of each benchmark (default: different for each benchmark).",
)
@click.option(
    "--only", type=click.Choice(list(BENCHMARKS)), multiple=True, help="Run only this benchmark; may be repeated."
)
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(rounds: int | None, only: tuple[str, ...], write: bool) -> None:
    """Measure the time that the harness and the grader take, and exit with 1 if a target is missed."""
    if write and only:
        raise click.UsageError("--write needs the whole table: do not use it with --only.")
    chosen = {name: BENCHMARKS[name] for name in only or BENCHMARKS}
    if any(one.in_sandbox for one in chosen.values()):
        need_sandbox()
    machine, rows = this_machine(), []
    for name, one in chosen.items():
        click.echo(f"{name}: {rounds or one.rounds} round(s) ...", err=True)
        rows.append(one.measured(rounds or one.rounds))
    finish("bench", rows, machine, write=write)


if __name__ == "__main__":
    main()
