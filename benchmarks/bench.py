"""`make bench`: what the harness and the grader cost, in one table; exits 1 where a target is missed.

Each benchmark measures in one run of its own and gives one row. Progress goes to standard error.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from benchmarks.grading import bench_cold, bench_unchanged, bench_without_replay
from benchmarks.instruments import INSTRUMENTS
from benchmarks.page import PAGE, replace_section
from benchmarks.table import as_json, as_markdown, show, this_machine
from benchmarks.timing import (
    BenchmarkError,
    Row,
    harness_command,
    interleaved,
    parse_seconds,
    ratio_row,
    run,
    seconds_of,
    seconds_row,
    slowest_row,
)
from harness.canonical_setup import run_environment
from harness.recipe import recipe_ids

HERE = Path(__file__).parent
PLAIN_RECIPE = "huge_lr"  # the one whose broken run benchmarks/plain_mlp.py writes out


def bench_exercise(rounds: int) -> Row:
    """Time `harness exercise` on the MLP against the plain script, whole processes."""
    plain = [sys.executable, str(HERE / "plain_mlp.py")]
    environment = run_environment("portable")
    seconds = interleaved(
        {
            "harness exercise": lambda: seconds_of([harness_command(), "exercise", PLAIN_RECIPE]),
            "plain script": lambda: seconds_of(plain, environment),
        },
        rounds,
    )
    what = f"harness exercise {PLAIN_RECIPE} (MLP), whole process / plain script"
    return ratio_row("exercise", what, 1.5, seconds, "harness exercise", "plain script")


def _bench_loop(name: str, experiment: str, label: str, target: float, rounds: int) -> Row:
    words = [sys.executable, str(HERE / "loop.py"), experiment, str(rounds)]
    seconds = parse_seconds(run(words, run_environment("portable")))
    what = f"training loop with recording, {label} / without"
    return ratio_row(name, what, target, seconds, "recorded", "plain")


def bench_recording_mlp(rounds: int) -> Row:
    """Time the MLP's training loop with recording and without."""
    return _bench_loop("recording-mlp", "digits_mlp", "MLP", 1.25, rounds)


def bench_recording_cnn(rounds: int) -> Row:
    """Time the CNN's training loop with recording and without."""
    return _bench_loop("recording-cnn", "shapes_cnn", "CNN", 1.10, rounds)


def bench_help(rounds: int) -> Row:
    """Time `harness --help` beside a Python that does nothing."""
    seconds = interleaved(
        {
            "harness --help": lambda: seconds_of([harness_command(), "--help"]),
            "python -c pass": lambda: seconds_of([sys.executable, "-c", "pass"]),
        },
        rounds,
    )
    return seconds_row("help", "harness --help", 0.3, seconds, "harness --help", "python -c pass")


def bench_recipes(rounds: int) -> Row:
    """Time `harness exercise` of every recipe, whole processes; the row is the slowest."""
    seconds: dict[str, list[float]] = {recipe: [] for recipe in recipe_ids()}
    for _ in range(rounds):
        for recipe, times in seconds.items():
            times.append(seconds_of([harness_command(), "exercise", recipe]))
    return slowest_row("recipes", f"harness exercise, the slowest of {len(seconds)} recipes", 15.0, seconds)


# Each with its rounds: enough that the median holds still, few enough that all of it can be waited for.
BENCHMARKS: dict[str, tuple[Callable[[int], Row], int]] = {
    "exercise": (bench_exercise, 7),
    "recording-mlp": (bench_recording_mlp, 100),
    "recording-cnn": (bench_recording_cnn, 40),
    "help": (bench_help, 20),
    "recipes": (bench_recipes, 1),
    "grade-cold": (bench_cold, 3),
    "grade-checks": (bench_without_replay, 3),
    "grade-unchanged": (bench_unchanged, 3),
    **INSTRUMENTS,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON object, every round included.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds of each benchmark (its own number).")
@click.option("--only", type=click.Choice(list(BENCHMARKS)), help="Run this one benchmark.")
@click.option("--write", is_flag=True, help=f"Write its section of {PAGE.parent.name}/{PAGE.name} too.")
def main(json_wanted: bool, rounds: int | None, only: str | None, write: bool) -> None:
    """Measure what the harness and the grader cost, and exit 1 where a target is missed."""
    if write and only:
        raise click.UsageError("--write makes the whole section: leave --only out.")
    machine = this_machine()
    rows = []
    for name in [only] if only else BENCHMARKS:
        benchmark, usual = BENCHMARKS[name]
        click.echo(f"{name}: {rounds or usual} round(s) ...", err=True)
        try:
            rows.append(benchmark(rounds or usual))
        except BenchmarkError as error:
            raise click.ClickException(str(error)) from None
    if json_wanted:
        click.echo(as_json(rows, machine))
    else:
        show(rows, machine, Console())
    if write:
        replace_section(PAGE, "bench", as_markdown(rows, machine))
    sys.exit(0 if all(row.met for row in rows) else 1)


if __name__ == "__main__":
    main()
