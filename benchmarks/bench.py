"""`make bench`: what the harness and the grader cost, as ratios with targets. Exits with 1 if a target is missed."""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import perf_counter

import click

from benchmarks.measure import (
    PAGE,
    BenchmarkError,
    Row,
    command_path,
    finish,
    interleaved,
    ratio_row,
    run,
    seconds_of,
    seconds_row,
    this_machine,
)
from grader.course.examples import broken_workspace, example_submission
from grader.replay.replayer import Replayer, open_sandbox
from grader.replay.request import trusted_requests
from grader.sandbox import sandbox_problem
from harness.canonical_setup import run_environment
from harness.data.loading import default_cache
from harness.recipes.catalogue import load_recipe
from harness.run.settings import RunSettings

HERE = Path(__file__).parent
PLAIN = (sys.executable, HERE / "plain_mlp.py")
RECIPE = "huge_lr"  # the one whose broken run plain_mlp.py writes out


def exercise(rounds: int) -> Row:
    """Time `harness exercise` on the MLP against the plain script, whole processes."""
    environment = run_environment("portable")
    seconds = interleaved(
        {
            "harness": lambda: seconds_of([command_path("harness"), "exercise", RECIPE]),
            "plain script": lambda: seconds_of(PLAIN, environment),
        },
        rounds,
    )
    return ratio_row("harness exercise (MLP), whole process / plain script", 1.5, seconds, "harness", "plain script")


def recording(experiment: str, label: str, target: float) -> Callable[[int], Row]:
    """Return the benchmark of a training loop with recording against the same loop without."""

    def measured(rounds: int) -> Row:
        words = [sys.executable, HERE / "loop.py", experiment, str(rounds)]
        seconds = json.loads(run(words, run_environment("portable")))
        return ratio_row(f"training loop with recording, {label} / without", target, seconds, "recorded", "plain")

    return measured


def start_up(command: str) -> Callable[[int], Row]:
    """Return the benchmark of `<command> --help` beside a Python that does nothing."""

    def measured(rounds: int) -> Row:
        seconds = interleaved(
            {
                command: lambda: seconds_of([command_path(command), "--help"]),
                "python -c pass": lambda: seconds_of([sys.executable, "-c", "pass"]),
            },
            rounds,
        )
        return seconds_row(f"{command} --help", 0.3, seconds, command, "python -c pass")

    return measured


def triage(rounds: int) -> Row:
    """Time `harness triage` on the MLP beside a process that imports torch and does nothing."""
    environment, torch = run_environment("portable"), "python -c 'import torch'"
    seconds = interleaved(
        {
            "triage": lambda: seconds_of([command_path("harness"), "triage", RECIPE]),
            torch: lambda: seconds_of([sys.executable, "-c", "import torch"], environment),
        },
        rounds,
    )
    return seconds_row("harness triage (MLP)", 15.0, seconds, "triage", torch)


def replay(rounds: int) -> Row:
    """Time `grader score` of one submission with a new fix against the plain script.

    The grader knows the replays that a class shares, the broken run and the reference fix, from an earlier submission.
    """
    if problem := sandbox_problem():
        raise BenchmarkError(problem)
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as scratch:
        folder = Path(scratch)
        template = broken_workspace(RECIPE, folder / "template")
        healthy = load_recipe(RECIPE).healthy_source()
        students = iter([f"s{index}" for index in range(rounds + 2)])
        for index in range(rounds + 2):  # a first one before all rounds, and one for the round that warms up
            source = healthy.replace("lr=0.1,", f"lr={0.08 + index / 1000},")
            work, out = folder / f"work{index}", folder / f"s{index}"
            example_submission(RECIPE, f"s{index}", source, template, work, out)

        def score() -> float:
            words = [command_path("grader"), "score", next(students), "--out", "reports"]
            start = perf_counter()
            run(words, {**os.environ, "TRAINWRECK_REPLAYS": str(folder / "replays")}, folder, allowed=(0, 1))
            return perf_counter() - start

        score()
        environment = run_environment("portable")
        seconds = interleaved({"grader": score, "plain script": lambda: seconds_of(PLAIN, environment)}, rounds)
    what = "grader score of one new submission (MLP), whole process / plain script"
    return ratio_row(what, 2.5, seconds, "grader", "plain script")


TIME_TRAINING = """
import sys, tempfile, time
from pathlib import Path
from harness.data.loading import load_dataset
from harness.run.experiment import load_experiment, tensor_data
from harness.run.settings import RunSettings
from harness.run.training import train
from harness.recipes.catalogue import load_recipe
from harness.canonical_setup import apply_numerics
recipe, seconds = load_recipe(sys.argv[1]), []
data = tensor_data(load_dataset(recipe.dataset))
apply_numerics("portable", "cpu")
for seed in range(4):
    experiment = load_experiment(Path("experiment.py"), recipe.broken_source())
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        train(experiment, data, RunSettings(seed=seed, dataset=recipe.dataset), Path(folder))
        seconds.append(time.perf_counter() - start)
print(sorted(seconds[1:])[1])
"""


def warm_replay(rounds: int) -> Row:
    """Time a replay of the MLP in a warm sandbox, with its evaluation, against its training in a warm process."""
    if problem := sandbox_problem():
        raise BenchmarkError(problem)
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

        def trained() -> float:
            return float(run([sys.executable, "-c", TIME_TRAINING, RECIPE], run_environment("portable")))

        seconds = interleaved({"replay": replayed, "training": trained}, rounds)
    return ratio_row("replay and evaluation (MLP), warm / its training", 1.5, seconds, "replay", "training")


# Each with its rounds: enough for a stable median, few enough to wait for.
BENCHMARKS: dict[str, tuple[Callable[[int], Row], int]] = {
    "exercise": (exercise, 7),
    "recording-mlp": (recording("digits_mlp", "MLP", 1.15), 100),
    "recording-cnn": (recording("shapes_cnn", "CNN", 1.10), 40),
    "harness-help": (start_up("harness"), 20),
    "grader-help": (start_up("grader"), 20),
    "triage": (triage, 3),
    "replay": (replay, 3),
    "warm-replay": (warm_replay, 15),
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each benchmark (its own number).")
@click.option("--only", type=click.Choice(list(BENCHMARKS)), multiple=True, help="Run this one; repeatable.")
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(rounds: int | None, only: tuple[str, ...], write: bool) -> None:
    """Measure what the harness and the grader cost, and exit with 1 if a target is missed."""
    if write and only:
        raise click.UsageError("--write needs the whole table: leave --only out.")
    machine, rows = this_machine(), []
    for name in only or BENCHMARKS:
        benchmark, usual = BENCHMARKS[name]
        click.echo(f"{name}: {rounds or usual} round(s) ...", err=True)
        try:
            rows.append(benchmark(rounds or usual))
        except BenchmarkError as error:
            raise click.ClickException(str(error)) from None
    finish("What the harness and the grader cost", "bench", rows, machine, write=write)


if __name__ == "__main__":
    main()
