"""Run the checks on programs, and decide whether their outcomes point at the area of the fault."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

import click

from benchmarks.measure import ROOT, portable_pool
from harness.canonical_setup import apply_numerics, usable_cores
from harness.checks import Check, Outcome, check_names, load_check, make_check
from harness.recipes.recipe import Area
from harness.run.settings import RunSettings

CACHE = Path.home() / ".cache" / "trainwreck" / "checks.jsonl"
CRASH = "crash"
Verdict = Literal["area", "elsewhere", "vague", "silent"]

# {place: areas}. An outcome points at the areas of all places that its explanation or its `look` names. If it names no
# place, it is vague. The places are the functions of an experiment. If an experiment has no `predict`, it serves
# predictions in `evaluate`.
PLACES: Mapping[str, tuple[Area, ...]] = {
    "load_data": ("data", "pipeline"),
    "prepare_batch": ("pipeline",),
    "build_model": ("model",),
    "compute_loss": ("loss",),
    "build_optimizer": ("optimizer",),
    "build_scheduler": ("optimizer", "loop"),
    "train_step": ("loop",),
    "evaluate": ("evaluation", "deployment"),
    "predict": ("deployment",),
}

jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), default=usable_cores, help="How many programs to check at the same time."
)


class Subject(NamedTuple):
    """A program to check. `areas` are the areas of its fault, and `sound` names the program without the fault."""

    name: str
    source: str
    settings: RunSettings
    areas: frozenset[Area] = frozenset()
    sound: str = ""


class Answer(NamedTuple):
    """The outcomes that find a fault in a program, each written as "check outcome", and the seconds for all checks.

    If a check raises an exception, its outcome is `CRASH`.
    """

    said: Sequence[str]
    seconds: float


def triage_checks() -> list[Check]:
    """Return the checks that `harness triage` runs, in its order."""
    return [check for check in map(load_check, check_names()) if check.in_triage]


def areas_of(outcome: Outcome) -> set[Area]:
    """Return the areas to which an outcome points. The set is empty if the outcome finds no fault or is vague."""
    if outcome.sound:
        return set()
    text = f"{outcome.reading} {outcome.look}"
    return {area for place, areas in PLACES.items() if re.search(rf"\b{place}\b", text) for area in areas}


def verdict(causes: Set[Area], said: Iterable[str], of_sound: Iterable[str] = ()) -> Verdict:
    """Return whether the outcomes in `said` point at one of the causes.

    Outcomes that the program without the fault has, too, do not count, and a crash does not point at any area.
    """
    new = [one.split() for one in set(said) - set(of_sound)]
    found = [load_check(check).outcome(outcome) for check, outcome in new if outcome != CRASH]
    areas = set[Area]().union(*map(areas_of, found))
    if areas & causes:
        return "area"
    return "elsewhere" if areas else "vague" if found else "silent"


def answers(subjects: Sequence[Subject], jobs: int, cache: Path = CACHE) -> dict[str, Answer]:
    """Run the checks on each subject, and return {name: answer}. A file stores the answers of this harness version."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    lines = cache.read_text(encoding="utf-8").splitlines() if cache.is_file() else []
    known = {key: Answer(said, seconds) for key, said, seconds in map(json.loads, lines)}
    version = _version()
    words = {one.name: f"{version} {one.settings} {one.source}" for one in subjects}
    keys = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in words.items()}
    missing = [one for one in subjects if keys[one.name] not in known]
    with portable_pool(jobs) as pool, cache.open("a", encoding="utf-8") as file:
        for one, answer in zip(missing, pool.map(_answer, missing), strict=True):
            known[keys[one.name]] = answer
            file.write(json.dumps([keys[one.name], *answer]) + "\n")
            file.flush()
            click.echo(f"{one.name}: {', '.join(answer.said) or '-'}", err=True)
    return {one.name: known[keys[one.name]] for one in subjects}


def _version() -> str:
    """Return a hash of all code that determines the outcomes of the checks."""
    files = [path for ending in ("py", "toml") for path in sorted((ROOT / "harness").rglob(f"*.{ending}"))]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _answer(one: Subject) -> Answer:
    """Run all checks of `harness triage` on a program, in a process of `portable_pool`."""
    from harness.checks.core import subject
    from harness.data.loading import load_dataset

    apply_numerics("portable")
    data = load_dataset(one.settings.dataset)
    start, said = perf_counter(), []
    made = subject.Subject(Path("experiment.py"), one.source, one.settings, data)
    for check in triage_checks():
        try:
            outcome = make_check(made, check.name).outcome
        except Exception as error:
            click.echo(f"{one.name}, {check.name}: {type(error).__name__}: {error}", err=True)
            outcome = CRASH
        if outcome == CRASH or not check.outcome(outcome).sound:
            said.append(f"{check.name} {outcome}")
    return Answer(said, round(perf_counter() - start, 3))
