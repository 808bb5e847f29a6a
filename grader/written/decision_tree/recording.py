"""Records what the instruments find of every broken run and of sound experiments, under seeds that are held back."""

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader.score.known_edits import load_shared_edits
from grader.syntax.parse import program_digest
from grader.written.decision_tree.recorded import Recorded, Recording
from harness.checks import check_names, load_check, run_checks
from harness.recipe import ROOT, experiment_source, load_recipe, recipe_ids
from harness.run.settings import RunSettings
from harness.written.decision_tree.tree import HEALTHY

COMMAND = "python -m benchmarks.tree_outcomes --write"
# Neither a recipe's own seed nor one of those under which docs/calibration.md shows the runs.
SEEDS = (2741, 3389, 5101)
# All checks of a variant of this one take 3 seconds together; of the others, half a minute: every third of theirs.
_QUICK = "digits_mlp"
# What decides about outcomes is what this imports, of the harness.
_MEASURES = "harness.checks.lab.subject"
# But for what draws and packs: it measures nothing.
_APART = ("harness.page", "harness.checks.cli")


@dataclass(frozen=True)
class Subject:
    """An experiment that a tree is walked with."""

    truth: str
    name: str
    seed: int
    dataset: str
    source: str

    @property
    def key(self) -> str:
        """The SHA-256 of all that decides about its outcomes, but for comments and the like."""
        parts = [self.seed, self.dataset, program_digest(self.source), instruments_digest()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def subjects() -> tuple[Subject, ...]:
    """Return all that is recorded: every recipe, the experiments that they break, and sound variants of these.

    A variant is recorded under one seed: what varies here is the experiment.
    """
    recipes = [load_recipe(id) for id in recipe_ids()]
    datasets = {recipe.experiment: recipe.dataset for recipe in recipes}
    found = [
        Subject(recipe.id, recipe.id, seed, recipe.dataset, recipe.broken_source())
        for recipe in recipes
        for seed in SEEDS
    ]
    found += [
        Subject(HEALTHY, name, seed, dataset, experiment_source(name))
        for name, dataset in sorted(datasets.items())
        for seed in SEEDS
    ]
    chosen = [
        (name, edit)
        for name in sorted(datasets)
        for place, edit in enumerate(edit for edit in load_shared_edits(name) if edit.verdict == "sound")
        if name == _QUICK or place % 3 == 0
    ]
    for place, (name, edit) in enumerate(chosen):
        seed, source = SEEDS[place % len(SEEDS)], edit.source(experiment_source(name))
        found.append(Subject(HEALTHY, f"{name}, {edit.id}", seed, datasets[name], source))
    return tuple(found)


def record(known: Mapping[str, Recorded], *, jobs: int) -> Iterator[Recording]:
    """Make every check of every subject, `jobs` of them side by side; what is known under its key is kept.

    Yields what there is so far whenever there is more, and at the end the whole, in the order of `subjects`.
    """
    wanted = subjects()
    found = {one.key: known[one.key] for one in wanted if one.key in known}

    def so_far() -> Recording:
        ones = (
            found[one.key].model_copy(update={"name": one.name, "truth": one.truth})
            for one in wanted
            if one.key in found
        )
        return Recording(made_by=COMMAND, experiments=tuple(ones))

    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_recorded, one) for one in wanted if one.key not in found]
        try:
            for future in as_completed(futures):
                found[future.result().key] = future.result()
                yield so_far()
        finally:
            pool.shutdown(cancel_futures=True)
    yield so_far()


def _recorded(subject: Subject) -> Recorded:
    settings = RunSettings(seed=subject.seed, dataset=subject.dataset)
    return Recorded(
        truth=subject.truth,
        name=subject.name,
        seed=subject.seed,
        key=subject.key,
        outcomes={name: found.outcome for name, found in run_checks(subject.source, settings).items()},
    )


def stale(recording: Recording, wanted: Sequence[Subject]) -> list[str]:
    """Return the names of what is not recorded, or was by other instruments or from another source."""
    keys = {one.key for one in recording.experiments}
    return [f"{subject.name}, seed {subject.seed}" for subject in wanted if subject.key not in keys]


@cache
def instruments_digest() -> str:
    """Return the SHA-256 of the programs that measure, of the checks' ids and outcomes, and of the data."""
    outcomes = [[name, [outcome.id for outcome in load_check(name).outcomes]] for name in check_names()]
    total = hashlib.sha256(json.dumps(outcomes).encode())
    total.update((ROOT / "harness" / "data" / "embedded" / "SHA256SUMS").read_bytes())
    for name in sorted(measuring_modules()):
        total.update(f"{name} {program_digest(_path(name).read_text(encoding='utf-8'))}\n".encode())
    return total.hexdigest()


def measuring_modules() -> set[str]:
    """Return the modules of the harness that a measurement imports, directly or through others.

    What is imported inside a function is for a command or a page: it measures nothing.
    """
    found: set[str] = set()
    new = [_MEASURES, *(f"harness.checks.{name}" for name in check_names())]
    while new:
        name = new.pop()
        if name not in found:
            found.add(name)
            new += _imports(_path(name))
    return found


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found = (str(node.module), *names)
            yield from (name for name in found if _path(name).is_file() and not name.startswith(_APART))
