"""What a replay costs in a process that forks for each run, against a fresh process for each."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.course.make import fixed_source
from benchmarks.course.plan import fixes_of
from benchmarks.timing import BenchmarkError, Row, ratio_row
from grader.replay.replayer import ENGINES, Replayer, open_sandbox
from grader.replay.request import Request
from grader.syntax.parse import tree_digest
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

RECIPE = "huge_lr"  # a multilayer perceptron


def engine_rows() -> list[Row]:
    """Make a replay of each fix of the MLP by either engine, evaluation included, one at a time, in turns.

    A replay before that starts the forking process, which serves a whole class. Raises `BenchmarkError` where a
    replay does not come to its end.
    """
    requests = [_request(fix.id) for fix in fixes_of(RECIPE)]
    seconds: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    with ExitStack() as stack:
        replayers = {
            engine: Replayer(stack.enter_context(open_sandbox(engine, 1)), Path("no data is fetched"))
            for engine in ENGINES
        }
        _timed(replayers["warm"], requests[0])
        for turn, request in enumerate(requests):
            for engine in sorted(ENGINES, reverse=bool(turn % 2)):
                seconds[engine].append(_timed(replayers[engine], request))
    what = f"a replay of {RECIPE} (MLP) in a fresh process for each run / in a forked one"
    row = ratio_row("engines", what, 5.0, seconds, "fresh", "warm")
    return [replace(row, at_least=True)]


def _request(fix: str) -> Request:
    recipe, source = load_recipe(RECIPE), fixed_source(RECIPE, fix)
    settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
    return Request(load_recipe(RECIPE), settings, source, tree_digest(source), trusted=False)


def _timed(replayer: Replayer, request: Request) -> float:
    start = perf_counter()
    replay = replayer.make(request)
    if replay.status != "OK":
        raise BenchmarkError(f"a replay of {RECIPE} ended with {replay.status}: {replay.message}")
    return perf_counter() - start
