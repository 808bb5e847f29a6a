"""How long the experiments of a course train by themselves: the yardstick of what replaying them may cost."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.course.attacks import attacking_source
from benchmarks.course.make import fixed_source
from benchmarks.course.plan import Entry
from benchmarks.timing import BenchmarkError
from grader.replay.inside import FOLDER
from grader.replay.replayer import replay_environment, visible_folders
from grader.replay.request import RUN_LIMITS
from grader.sandbox import WarmSandbox
from grader.syntax.parse import tree_digest
from harness.recipe import load_recipe
from harness.run.settings import RunSettings

INSIDE = Path(__file__).parent / "inside"
Program = tuple[str, str]  # a recipe and the source of an experiment


def trained_programs(entries: Iterable[Entry]) -> dict[Program, int]:
    """Return the programs that a class makes the grader train, and how often it trains each.

    For each recipe the grader itself brings the broken run, the reference fix, and the reference fix once more, as if
    a student had sent it. What students send is trained once, in however many texts it comes. Attacks that end
    before they train are not among them.
    """
    sent: dict[tuple[str, str], Program] = {}
    for entry in entries:
        if entry.claim != "wrong hash" and entry.attack in ("", "tampering"):
            source = attacking_source(entry.attack, fixed_source(entry.recipe, entry.fix))
            sent[entry.recipe, tree_digest(source)] = (entry.recipe, source)
    counts: Counter[Program] = Counter(sent.values())
    for recipe_id in {recipe for recipe, _ in sent}:
        recipe = load_recipe(recipe_id)
        counts[recipe_id, recipe.broken_source()] += 1
        counts[recipe_id, recipe.healthy_source()] += 2
    return dict(sorted(counts.items()))


def training_seconds(
    programs: Sequence[Program], progress: Callable[[int, int], None]
) -> Mapping[Program, float]:
    """Train each program in the grader's own sandbox, one at a time, and return the seconds of the training alone.

    Raises `BenchmarkError` for one that does not come to its end.
    """
    visible = [*visible_folders(), INSIDE]
    sandbox = WarmSandbox(FOLDER / "preload.py", replay_environment(), visible, jobs=1)
    found: dict[Program, float] = {}
    try:
        for done, (recipe_id, source) in enumerate(programs, start=1):
            recipe = load_recipe(recipe_id)
            settings = RunSettings(seed=recipe.seed, dataset=recipe.dataset)
            job = {"settings": asdict(settings), "source": source}
            result = sandbox(
                [sys.executable, "-P", str(INSIDE / "timed_training.py")],
                inputs={"job.json": json.dumps(job).encode()},
                environment=replay_environment(),
                limits=RUN_LIMITS,
                visible=visible,
            )
            if result.status != "OK":
                said = result.stderr.decode("utf-8", "replace")[-1000:]
                raise BenchmarkError(
                    f"a training of {recipe_id} ended with {result.status}: {result.message} {said}"
                )
            found[recipe_id, source] = json.loads(result.files["seconds.json"])
            progress(done, len(programs))
    finally:
        sandbox.close()
    return found
