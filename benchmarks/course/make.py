"""Makes the tarballs of a course: each distinct fix is really run once, and handed in by many in their own words."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.course.attacks import attacking_source, attacking_tarball
from benchmarks.course.claims import with_claim
from benchmarks.course.own_work import own_report, own_source
from benchmarks.course.plan import Entry, fixes_of
from benchmarks.course.tarballs import Members, packed, unpacked, with_manifest
from grader.course.examples import broken_workspace
from grader.selfcheck.handed_in import Submissions
from harness.recipe import load_recipe
from harness.run.metrics_log import Record, batch_records, log_lines, parse_log
from harness.workspace import source_hash

_META = "runs/fixed/checkpoint.pt.meta.json"


@dataclass(frozen=True)
class Run:
    """One fix of a recipe as it was handed in by the harness's own commands, both runs really made."""

    members: Members

    @cached_property
    def batches(self) -> Mapping[str, Sequence[Record]]:
        """The batches in the logs of the runs "broken" and "fixed"."""
        logs = {run: self.members[f"runs/{run}/metrics.log"].decode() for run in ("broken", "fixed")}
        return {run: batch_records(parse_log(log_lines(log), run)) for run, log in logs.items()}


Key = tuple[str, str]  # a recipe and the id of a fix
Runs = Mapping[Key, Run]
Progress = Callable[[int, int], None]


def fixed_source(recipe: str, fix: str) -> str:
    """Return the experiment of a recipe with a fix in it."""
    variant = next(variant for variant in fixes_of(recipe) if variant.id == fix)
    return variant.source(load_recipe(recipe).broken_source())


def make_runs(entries: Iterable[Entry], memory: Path, jobs: int, progress: Progress) -> Runs:
    """Return a run of each fix that these submissions need; in the folder `memory` they are remembered.

    Raises `UserError` where one cannot be made.
    """
    wanted = sorted({(entry.recipe, fix) for entry in entries for fix in _needed(entry)})
    known = Submissions(memory, fresh=False)
    with (
        tempfile.TemporaryDirectory(prefix="trainwreck-course-") as scratch,
        ThreadPoolExecutor(jobs) as pool,
    ):
        folder = Path(scratch)

        def recalled(key: Key) -> Path | None:
            return known.known(*key, fixed_source(*key), folder / "out")

        def made(key: Key) -> Path:
            recipe, fix = key
            work = folder / "work" / recipe / fix
            return known.make(recipe, fix, fixed_source(*key), folder / "template", work, folder / "out")

        paths = {key: path for key in wanted if (path := recalled(key))}
        missing = [key for key in wanted if key not in paths]
        recipes = sorted({recipe for recipe, _ in missing})
        list(pool.map(lambda recipe: broken_workspace(recipe, folder / "template"), recipes))
        for done, (key, path) in enumerate(zip(missing, pool.map(made, missing), strict=True), start=1):
            paths[key] = path
            progress(done, len(missing))
        return {key: Run(unpacked(path.read_bytes())) for key, path in paths.items()}


def _needed(entry: Entry) -> tuple[str, ...]:
    return (entry.fix, entry.other_fix) if entry.claim else (entry.fix,)


def entry_source(entry: Entry, seed: int) -> str:
    """Return the experiment that a student hands in."""
    source = attacking_source(entry.attack, fixed_source(entry.recipe, entry.fix))
    return own_source(source, entry.student, entry.random(seed, "experiment"))


def tarball(entry: Entry, runs: Runs, seed: int) -> bytes:
    """Return what a student hands in: equal arguments give equal bytes."""
    run = runs[entry.recipe, entry.fix]
    source = entry_source(entry, seed)
    dice = entry.random(seed, "report")
    model = run.members["report.md"].decode()
    report = own_report(model, entry.student, run.batches, dice)
    meta = json.loads(run.members[_META]) | {"source_sha256": source_hash(source)}
    members = {
        **run.members,
        "experiment.py": source.encode(),
        "runs/fixed/experiment.py": source.encode(),
        _META: (json.dumps(meta, indent=1) + "\n").encode(),
        "report.md": report.encode(),
    }
    if entry.attack:
        return attacking_tarball(entry.attack, members, entry.student)
    if not entry.claim:
        return packed(with_manifest(members, entry.student))
    members, untrue = with_claim(entry.claim, members, runs[entry.recipe, entry.other_fix].members)
    return packed(with_manifest(members, entry.student, untrue=untrue))


def make_course(folder: Path, entries: Sequence[Entry], runs: Runs, seed: int) -> None:
    """Write the tarballs of these submissions into a new folder, in place of whatever that held."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for entry in entries:
        tarball_path(folder, entry).write_bytes(tarball(entry, runs, seed))


def tarball_path(folder: Path, entry: Entry) -> Path:
    """Return where the tarball of a submission lies."""
    return folder / f"{entry.name}.tar.gz"


def link_class(course: Path, entries: Iterable[Entry], folder: Path) -> Path:
    """Return a new folder with some submissions of a course in it, none of which is copied."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for entry in entries:
        os.link(tarball_path(course, entry), tarball_path(folder, entry))
    return folder
