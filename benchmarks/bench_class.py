"""`make bench-class`: make a class of 2,100 submissions, grade it from cold and again unchanged, and look at memory.

Of each recipe, one fix of every verdict is really run. Every student hands in one of them, with another name,
other comments and another report, so no two tarballs are equal. One in ten claims a better log than the run had; one in
fifty is hostile. Every score is compared with the known verdict of its fix. Exits with 1 if a target is missed.
"""

import json
import os
import random
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

import click

from benchmarks.measure import PAGE, BenchmarkError, Row, command_path, finish, run, this_machine
from benchmarks.repack import repacked
from grader.course.examples import broken_workspace, example_submission
from grader.sandbox import sandbox_problem
from grader.score.solutions import KnownFix, known_fixes
from grader.score.verdict import SubmissionScore, read_scores
from grader.selfcheck.command import EXPECTED
from harness.errors import UserError
from harness.recipe import load_recipe, recipe_ids
from harness.run.provenance import usable_cores

SIZE, SEED = 2100, 1
COLD, UNCHANGED, MEMORY = 300.0, 60.0, 600.0  # targets: seconds, seconds, MB
# Most students find the fix.
_WEIGHTS = {"full": 6, "masking": 2, "wrong": 1, "alternative": 2, "overreach": 1}
Kind = Literal["honest", "forged", "truncated", "raises"]


@dataclass(frozen=True)
class Planned:
    """A submission to make: its name, its fix, and whether it is honest."""

    name: str
    fix: KnownFix
    kind: Kind


def plan(size: int, seed: int = SEED) -> list[Planned]:
    """Return the class; the same for the same size and seed."""
    random_ = random.Random(seed)
    fixes = {recipe: first_fixes(recipe) for recipe in recipe_ids()}
    recipes, entries = list(fixes), []
    for index in range(size):
        known = fixes[recipes[index % len(recipes)]]
        weights = [_WEIGHTS[fix.verdict] for fix in known]
        (fix,) = random_.choices(known, weights)
        kind: Kind = "honest"
        if index % 50 == 49:
            kind = "truncated" if index % 100 == 49 else "raises"
        elif index % 10 == 9:
            kind = "forged"
        entries.append(Planned(f"student{index}_{fix.recipe.id}", fix, kind))
    return entries


def first_fixes(recipe_id: str) -> list[KnownFix]:
    """Return the reference fix of a recipe, and its first known fix of every other verdict, in `_WEIGHTS`' order."""
    known, _ = known_fixes(load_recipe(recipe_id))
    firsts = (next((fix for fix in known if fix.verdict == verdict), None) for verdict in _WEIGHTS)
    return [fix for fix in firsts if fix is not None]


def make_class(entries: Sequence[Planned], folder: Path, jobs: int) -> Path:
    """Make the tarballs in `folder/submissions`, and return that folder."""
    submissions = folder / "submissions"
    fixes = list({_key(entry.fix): entry.fix for entry in entries}.values())
    with ThreadPoolExecutor(jobs) as pool:
        recipes = sorted({fix.recipe.id for fix in fixes})
        list(pool.map(lambda recipe: broken_workspace(recipe, folder / "template"), recipes))

        def made(fix: KnownFix) -> bytes:
            work, out = folder / "work" / f"{fix.recipe.id}-{fix.id}", folder / "runs" / fix.id
            path = example_submission(fix.recipe.id, "x", fix.source, folder / "template", work, out)
            return path.read_bytes()

        tarballs = dict(zip(map(_key, fixes), pool.map(made, fixes), strict=True))
    submissions.mkdir()
    for entry in entries:
        (submissions / f"{entry.name}.tar.gz").write_bytes(_tarball(entry, tarballs[_key(entry.fix)]))
    return submissions


def _key(fix: KnownFix) -> tuple[str, str]:
    """Return what tells a fix from all others: recipes of one experiment share sources, such as the healthy one."""
    return fix.recipe.id, fix.id


def _tarball(entry: Planned, honest: bytes) -> bytes:
    """Return one student's tarball: the known fix in own words, with the claims of its kind."""

    def change(members: dict[str, bytes]) -> None:
        source = members["experiment.py"] + f"\n# written by {entry.name}\n".encode()
        if entry.kind == "raises":
            source = b"raise SystemExit(3)\n" + source
        members["experiment.py"] = members["runs/fixed/experiment.py"] = source
        members["report.md"] += f"\nThis is how {entry.name} sees it.\n".encode()
        if entry.kind == "forged":
            *lines, last = members["runs/fixed/metrics.log"].decode().splitlines()
            better = json.dumps({**json.loads(last), "val_accuracy": 0.9999})
            members["runs/fixed/metrics.log"] = "\n".join([*lines, better, ""]).encode()

    data = repacked(honest, student=entry.name.partition("_")[0], change=change)
    return data[: len(data) // 2] if entry.kind == "truncated" else data


def problems(entries: Sequence[Planned], rows: Mapping[str, SubmissionScore]) -> Iterator[str]:
    """Yield what is wrong with the scores: a figure means nothing if the grader skipped its work."""
    for entry in entries:
        row = rows.get(entry.name)
        if row is None:
            yield f"{entry.name} has no row"
        elif entry.kind == "truncated":
            if row.status != "rejected":
                yield f"{entry.name} is truncated, and {row.status}"
        elif row.recipe != entry.fix.recipe.id:
            yield f"{entry.name} is graded as {row.recipe}"
        elif entry.kind == "raises":
            if row.criteria.get("fix") and row.criteria["fix"].points:
                yield f"{entry.name} raises, and has points for its fix"
        elif not row.criteria:
            yield f"{entry.name} is {row.status}: {row.reason}"
        else:
            yield from _wrong_points(entry, row)


def _wrong_points(entry: Planned, row: SubmissionScore) -> Iterator[str]:
    correct = row.criteria["fix"].checks[0]
    low, high = EXPECTED[entry.fix.verdict][0]
    if correct.points is not None and not low <= correct.points <= high:
        wanted = f"{entry.fix.verdict} has {low:g} to {high:g}"
        yield f"{entry.name} has {correct.points:g} points for a correct fix; {wanted}"
    runs = row.criteria["reproducibility"]
    if runs.points is not None and (runs.points == runs.max) == (entry.kind == "forged"):
        yield f"{entry.name} ({entry.kind}) has {runs.points:g} points for its runs"


def score(submissions: Path, jobs: int) -> tuple[float, float]:
    """Run `grader score`; return its wall-clock seconds, and the memory of its largest process so far in MB."""
    words = [command_path("grader"), "score", submissions.name, "--out", "reports", "--jobs", str(jobs)]
    environment = {**os.environ, "TRAINWRECK_REPLAYS": str(submissions.parent / "replays")}
    start = perf_counter()
    run(words, environment, submissions.parent, allowed=(0, 1))
    seconds = perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


def measure(size: int, folder: Path, jobs: int) -> list[Row]:
    """Make and grade a class below an empty folder. Raises `BenchmarkError` if a score is wrong."""
    entries = plan(size)
    _say(f"making {size} submissions ...")
    submissions = make_class(entries, folder, jobs)
    _say("grading them from cold ...")
    cold, peak = score(submissions, jobs)
    first = (folder / "reports" / "scores.json").read_bytes()
    rows = {row.submission: row for row in read_scores(folder / "reports").submissions}
    wrong = list(problems(entries, rows))
    if wrong:
        raise BenchmarkError(f"{len(wrong)} scores are wrong: {'; '.join(wrong[:5])}.")
    _say("grading them again ...")
    again, _ = score(submissions, jobs)
    if (folder / "reports" / "scores.json").read_bytes() != first:
        raise BenchmarkError("The scores of the unchanged class differ.")
    fixes = f"{len({_key(entry.fix) for entry in entries})} fixes, {jobs} jobs"
    each, made = f"{1000 * again / size:.0f} ms each", "while making the class and grading it from cold"
    share = size / SIZE
    return [
        Row(f"{size} submissions from cold", cold, "s", COLD * max(share, 0.3), fixes),
        Row("the same, unchanged", again, "s", UNCHANGED * max(share, 0.1), each),
        Row("memory of the largest process", peak, "MB", MEMORY, made),
    ]


def _say(message: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {message}", err=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=click.IntRange(min=1), default=SIZE, show_default=True, help="How many submissions.")
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(size: int, write: bool) -> None:
    """Measure what grading a whole class costs, and exit with 1 if a target is missed."""
    if write and size != SIZE:
        raise click.UsageError("--write needs the whole class: leave --size out.")
    if problem := sandbox_problem():
        raise click.ClickException(problem)
    machine = this_machine()
    with tempfile.TemporaryDirectory(prefix="trainwreck-class-") as folder:
        try:
            rows = measure(size, Path(folder), usable_cores())
        except (BenchmarkError, UserError) as error:
            raise click.ClickException(str(error)) from None
    finish("What grading a class costs", "class", rows, machine, write=write)


if __name__ == "__main__":
    main()
