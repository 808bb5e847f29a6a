"""`make bench-checks`: do our checks, and those of libraries that people use, find the faults of the catalogue?

Each tool is given the broken experiment of every recipe, and every healthy experiment with its sound variants. What it
says of a broken experiment counts if it does not say the same of the healthy one. The results of each subject are kept
below the cache folder, so a run that was interrupted goes on. Exits with 1 unless ours points at the area of the
cause in nine of ten recipes and raises no false alarm.
"""

import datetime
import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from benchmarks.bench_reports import PLACES, Area, areas_of
from benchmarks.measure import PAGE, BenchmarkError, markdown_table, run, this_machine, write_section
from grader.course.kit import LISTING, build_kit
from grader.syntax.edit_size import functions_changed
from harness.canonical_setup import run_environment, usable_cores
from harness.checks import load_check
from harness.errors import UserError
from harness.recipes.known_edits import load_shared_edits
from harness.recipes.recipe import Recipe, load_recipes

WORKER = Path(__file__).with_name("library.py")
ENVS = Path.home() / ".cache" / "trainwreck" / "libraries"
SHARE = 0.9
Verdict = Literal["area", "elsewhere", "vague", "nothing"]


@dataclass(frozen=True)
class Library:
    """A library, and the areas that each of its checks points at, by what its message says; none: "does not learn"."""

    name: str
    pin: str
    points: Mapping[str, set[Area]]

    def areas(self, check: str) -> set[Area]:
        """Return the areas that a check of the library points at. Raises `KeyError` for one that is not listed."""
        return self.points[check]


class Ours(Library):
    """This suite: an outcome points at the areas of the functions that it names."""

    def areas(self, check: str) -> set[Area]:
        """Return the areas that `check`, a name and an outcome, points at."""
        name, outcome = check.split()
        return areas_of(load_check(name).outcome(outcome))


OURS = Ours("trainwreck", "trainwreck", {})
LIBRARIES = (
    OURS,
    Library("torchtest2", "torchtest2==0.1.0", {
        "forward": {"model"}, "output_shape": {"model"}, "output_finite": {"model"}, "output_range": {"model"},
        "output_varies": {"model"}, "eval_determinism": {"model"}, "loss": {"loss"},
        "initial_loss": {"data", "pipeline", "model"}, "optimizer_coverage": {"optimizer"},
        "gradient_flow": {"model", "loss"}, "gradient_magnitude": {"model", "loss", "pipeline", "optimizer"},
        "params_change": {"optimizer", "model"}, "frozen_params": {"optimizer", "model"},
        "input_dependency": {"model", "pipeline"}, "batch_independence": {"model", "loss"}, "overfit_batch": set(),
    }),
    Library("neural_net_checklist", "neural-net-checklist==1.1.0", {
        "loss_at_init": {"loss", "model"}, "init_calibrated": {"model"}, "forward_batch_independence": {"model"},
        "backward_batch_independence": {"model"}, "forward_causal": {"model"}, "non_zero_gradients": {"model"},
        "input_independent_baseline": {"data", "pipeline"}, "overfit_to_batch": set(),
    }),
    Library("pytest_torch", "pytest-torch==1.1.1", {
        "gradients_finite": {"model", "loss"}, "all_params_receive_grad": {"model", "loss"},
        "optimizer_coverage": {"optimizer"}, "run_finite": set(), "loss_decreases": set(), "overfits_one_batch": set(),
        "resume_equivalent": {"loop", "deployment"}, "frozen": {"model", "optimizer"}, "finite_outputs": {"model"},
        "deterministic": {"model"}, "batch_invariance": {"model"}, "no_state_mutation": {"model"},
    }),
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """An experiment that a library is given. `areas` are those of the cause: of the recipe, and of the function that
    the break changes; none if it is sound."""

    name: str
    experiment: str
    source: str
    seed: int
    dataset: str
    areas: frozenset[Area] = frozenset()


@dataclass(frozen=True)
class Answer:
    """What a library said of a subject, by check, and how long that took."""

    said: Mapping[str, str]
    seconds: float


def broken_subjects(recipes: Iterable[Recipe]) -> list[Subject]:
    """Return the broken experiment of each recipe."""
    found = []
    for one in recipes:
        broken = one.broken_source()
        places = functions_changed(one.healthy_source(), broken)
        areas = frozenset({one.area}.union(*(PLACES.get(place, ()) for place in places)))
        found.append(Subject(one.id, one.experiment, broken, one.seed, one.dataset, areas))
    return found


def sound_subjects(recipes: Iterable[Recipe], most: int | None = None) -> list[Subject]:
    """Return the healthy experiments of the recipes, each with at most so many of its sound variants."""
    found = []
    for recipe in {one.experiment: one for one in recipes}.values():
        healthy = recipe.healthy_source()
        edits = [edit for edit in load_shared_edits(recipe.experiment) if edit.verdict == "sound"][:most]
        sources = {"healthy": healthy} | {edit.id: edit.source(healthy) for edit in edits}
        for name, source in sources.items():
            subject = Subject(f"{recipe.experiment}/{name}", recipe.experiment, source, recipe.seed, recipe.dataset)
            found.append(subject)
    return found


def verdict(library: Library, causes: Set[Area], said: Iterable[str], of_healthy: Iterable[str] = ()) -> Verdict:
    """Return what a library finds: what it says of the healthy experiment, too, does not count."""
    new = set(said) - set(of_healthy)
    areas = set[Area]().union(*map(library.areas, new))
    if areas & causes:
        return "area"
    return "elsewhere" if areas else "vague" if new else "nothing"


def answers(
    library: Library, python: Path, subjects: Sequence[Subject], cache: Path, jobs: int
) -> dict[str, Answer]:  # fmt: skip
    """Return what a library says of each subject, by name; known answers come from the cache.

    Raises `BenchmarkError` if the worker ends early; the answers so far are kept.
    """
    code = _tree_hash() if library is OURS else hashlib.sha256(WORKER.read_bytes()).hexdigest()
    words = {one.name: json.dumps([library.pin, code, one.source, one.seed, one.dataset]) for one in subjects}
    keys = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in words.items()}
    lines = cache.read_text(encoding="utf-8").splitlines() if cache.is_file() else []
    known = {line["key"]: line for line in map(json.loads, lines)}
    missing = [one for one in subjects if keys[one.name] not in known]
    lock = Lock()

    def work(shard: Sequence[Subject]) -> None:
        asked = [
            {"key": keys[one.name], "source": one.source, "seed": one.seed, "dataset": one.dataset} for one in shard
        ]
        # The worker's folder would come first on its path, and hide packages of the same name.
        start = [str(python), "-P", str(WORKER), library.name]
        environment = run_environment("portable") | {"PYTHONPATH": str(PAGE.parent.parent) if library is OURS else ""}
        with subprocess.Popen(
            start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:  # fmt: skip
            assert process.stdin and process.stdout
            for one, question in zip(shard, asked, strict=True):
                process.stdin.write(json.dumps(question) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                if not line:
                    raise BenchmarkError(f"{library.name} ended at {one.name}; its message is above.")
                with lock, cache.open("a", encoding="utf-8") as file:
                    file.write(line)
                    known[keys[one.name]] = json.loads(line)
                click.echo(f"{library.name}, {one.name}: {', '.join(json.loads(line)['said']) or '-'}", err=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, [missing[index::jobs] for index in range(jobs) if missing[index::jobs]]))
    return {one.name: Answer(known[keys[one.name]]["said"], known[keys[one.name]]["seconds"]) for one in subjects}


def ready_environment(name: str, pin: str, folder: Path) -> Path:
    """Return the Python of the environment of a library below `folder`: its pin, and a student's kit of this suite.

    It is made anew if pin or kit have changed. Raises `BenchmarkError` if an installation fails, or if something else
    lies there.
    """
    place, marker = folder / name, folder / f"{name}.json"
    python = place / "bin" / "python"
    kit = build_kit(folder / "kit.tar.gz")
    wanted = {"pin": pin, "kit": kit[LISTING].decode()}
    if marker.is_file() and json.loads(marker.read_text(encoding="utf-8")) == wanted:
        return python
    if place.exists() and not marker.is_file():
        raise BenchmarkError(f"{place} is not an environment of this benchmark: name another folder with --envs.")
    marker.write_text("{}", encoding="utf-8")  # an interrupted installation starts again
    run([sys.executable, "-m", "venv", "--clear", place])
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*install, pin, str(folder / "kit.tar.gz")])
    marker.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def _tree_hash() -> str:
    """Return a hash of all that our checks are: the harness and the worker."""
    files = sorted([*(PAGE.parent.parent / "harness").rglob("*.py"), WORKER])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


HEADINGS = (
    "checks", "points at the area", "points elsewhere", "only that it does not learn", "nothing", "false alarms",
    "seconds a subject (median)",
)  # fmt: skip


def verdicts(library: Library, broken: Iterable[Subject], found: Mapping[str, Answer]) -> dict[str, Verdict]:
    """Return the verdict of a library on each broken subject, by name."""
    return {
        one.name: verdict(library, one.areas, found[one.name].said, found[f"{one.experiment}/healthy"].said)
        for one in broken
    }


def row(
    library: Library, judged: Mapping[str, Verdict], sound: Sequence[Subject], found: Mapping[str, Answer]
) -> list[str]:
    """Return the row of a library."""
    counts = Counter(judged.values())
    alarms = sum(bool(found[one.name].said) for one in sound)
    figures = [f"{counts[kind]} of {len(judged)}" for kind in ("area", "elsewhere", "vague", "nothing")]
    seconds = median(answer.seconds for answer in found.values())
    name = "ours" if library is OURS else library.pin.replace("==", " ")
    return [name, *figures, f"{alarms} of {len(sound)}", f"{seconds:.1f}"]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="ID", help="Only these recipes, and their experiments.")
@click.option(
    "--library", "names", multiple=True, type=click.Choice([one.name for one in LIBRARIES]), help="Only these."
)
@click.option("--sound", "most", type=click.IntRange(min=0), help="At most so many sound variants of an experiment.")
@click.option("--jobs", type=click.IntRange(min=1), default=usable_cores, help="How many workers side by side.")
@click.option(
    "--envs", type=click.Path(path_type=Path, file_okay=False), default=ENVS, show_default=True,
    help="Where the environments and the kept answers lie.",
)  # fmt: skip
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(only: tuple[str, ...], names: tuple[str, ...], most: int | None, jobs: int, envs: Path, write: bool) -> None:
    """Give the experiments of the catalogue to our checks and to other libraries."""
    machine, results = this_machine(), {}
    recipes = [one for one in load_recipes()[0] if not only or one.id in only]
    broken, sound = broken_subjects(recipes), sound_subjects(recipes, most)
    try:
        if unknown := set(only) - {one.id for one in recipes}:
            raise UserError(f"there is no recipe {', '.join(sorted(unknown))}: harness list names them.")
        envs.mkdir(parents=True, exist_ok=True)
        for library in LIBRARIES:
            if names and library.name not in names:
                continue
            python = (
                Path(sys.executable)
                if library is OURS
                else ready_environment(library.name, library.pin, envs.resolve())
            )
            cache = envs / f"{library.name}.checks.jsonl"
            found = answers(library, python, [*broken, *sound], cache, jobs)
            results[library.name] = (library, verdicts(library, broken, found), found)
    except (BenchmarkError, UserError) as error:
        raise click.ClickException(str(error)) from None
    rows = [row(library, judged, sound, found) for library, judged, found in results.values()]
    shown = Table(*HEADINGS)
    for cells in rows:
        shown.add_row(*cells)
    Console().print(shown)
    missed = "\n".join(f"- {name}: {says}" for name, says in _only_theirs(results).items())
    click.echo(missed)
    if OURS.name not in results:
        return
    _, judged, found = results[OURS.name]
    if write:
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        page = [markdown_table(HEADINGS, rows), missed, f"Measured on {date}: {machine}."]
        write_section("checks", "\n\n".join(filter(None, page)))
    enough = list(judged.values()).count("area") >= SHARE * len(judged)
    sys.exit(0 if enough and not any(found[one.name].said for one in sound) else 1)


def _only_theirs(results: Mapping[str, Any]) -> dict[str, str]:
    """Return, by library, the recipes in which it points at the area and ours does not."""
    ours = results[OURS.name][1] if OURS.name in results else {}
    said = {}
    for library, judged, _ in results.values():
        theirs = [name for name, kind in judged.items() if kind == "area" and ours.get(name) != "area"]
        if library is not OURS and ours:
            said[library.name] = f"points at the area where ours does not in {', '.join(theirs) or 'no recipe'}"
    return said


if __name__ == "__main__":
    main()
