"""`make bench-peers`: the same ten submissions, graded by this suite and by four tools that people use today.

docs/benchmarks.md says what is measured. Each tool gets an environment of its own below --envs: two minutes and 1.5 GB
a tool, once. The run takes about a quarter of an hour, mostly waiting for submissions that never end. Exits with 1
unless ours is the fastest tool that isolates submissions and the only one that loses nothing.
"""

import contextlib
import csv
import datetime
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple

import click
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.measure import PAGE, BenchmarkError, markdown_table, run, this_machine, write_section
from benchmarks.repack import repacked
from grader.course.examples import broken_workspace, example_submission
from grader.course.kit import LISTING, build_kit
from grader.sandbox import sandbox_problem
from harness.canonical_setup import usable_cores
from harness.errors import UserError
from harness.recipes.catalogue import load_recipe

RECIPE = "huge_lr"
NOTEBOOK = f"{RECIPE}.ipynb"
DATA = Path(__file__).with_name("peers")
CHECKS = DATA / "checks"
LIMIT_SECONDS = 120.0  # a submission, for a tool that has no limit of its own or a longer one
FIX_POINTS = 20.0

Kind = Literal["right", "wrong", "exits", "loops", "cheats"]
# What each student does with the broken experiment: five right fixes, two wrong ones, three hostile files.
_RATE = "lr=10.0, momentum=0.9"
_SGD = f"torch.optim.SGD(model.parameters(), {_RATE})"
_EDITS: dict[str, tuple[Kind, str, str]] = {
    "ada": ("right", _RATE, "lr=0.1, momentum=0.9"),
    "alan": ("right", _RATE, "lr=0.05, momentum=0.9"),
    "barbara": ("right", _SGD, "torch.optim.Adam(model.parameters(), lr=0.001, fused=True)"),
    "charles": ("cheats", "", ""),
    "donald": ("right", _RATE, "lr=0.2, momentum=0.9"),
    "edsger": ("wrong", _RATE, "lr=10.0"),
    "elliot": ("exits", "", ""),
    "emmy": ("wrong", "", ""),
    "frances": ("right", _RATE, "lr=0.1"),
    "lucifer": ("loops", "", ""),
}


@dataclass(frozen=True)
class HandedIn:
    """A submission. hostile: the lines at the top of its source that are meant to harm (""); sha256: the claimed digest
    of the fixed run's checkpoint, as `sha256sum` writes it; tarball: what `make submit` makes.
    """

    student: str
    kind: Kind
    source: str
    hostile: str
    sha256: str = ""
    tarball: bytes = b""


class Verdict(NamedTuple):
    """The points that a tool gives; None if it leaves them to a person."""

    points: float | None
    maximum: float


class Lost(NamedTuple):
    """A tool has no result for a submission; `says` is what it did instead."""

    says: str


class Outcome(NamedTuple):
    """What became of a submission."""

    kind: Kind
    verdict: Verdict | Lost


@dataclass(frozen=True)
class Tool:
    """A grading tool.

    prepare(python, folder, class) lays out what it needs. words(python, folder, student) is the command that grades one
    student in folder/place, or with `together` the whole class in `folder`. verdict(folder, student) reads the result.
    """

    name: str
    pin: str
    around: str
    grades: str
    points: str
    prepare: Callable[[Path, Path, Sequence[HandedIn]], None]
    words: Callable[[Path, Path, str], Sequence[str | Path]]
    verdict: Callable[[Path, str], Verdict | Lost]
    place: str = "."
    together: bool = False
    isolates: bool = False


@dataclass(frozen=True)
class Measured:
    """A tool's column: wall seconds for each honest submission, the first time and again, and all outcomes."""

    tool: Tool
    first: float
    again: float
    outcomes: tuple[Outcome, ...]

    def of(self, kind: Kind) -> list[Outcome]:
        """Return what became of the submissions of one kind."""
        return [outcome for outcome in self.outcomes if outcome.kind == kind]


def written() -> list[HandedIn]:
    """Return the ten, sorted by student, the hostile ones among the others; without digests and tarballs."""
    broken = load_recipe(RECIPE).broken_source()
    ten = []
    for student, (kind, find, new) in _EDITS.items():
        path = DATA / "hostile" / f"{kind}.py"
        lines = path.read_text(encoding="utf-8") if path.is_file() else ""
        source = broken.replace(find, new) if find else broken
        ten.append(HandedIn(student, kind, f"{lines}\n\n{source}" if lines else source, lines))
    return ten


def make_submissions(folder: Path, jobs: int) -> list[HandedIn]:
    """Make all ten as students do, with their runs.

    The one that exits and the one that loops have no run of their own, and claim the run of a right fix.
    """
    template = broken_workspace(RECIPE, folder / "template")

    def with_run(one: HandedIn) -> HandedIn:
        if one.kind in ("exits", "loops"):
            return one
        work = folder / one.student
        path = example_submission(RECIPE, one.student, one.source, template, work, folder / "submissions")
        digest = work / RECIPE / "runs" / "fixed" / "checkpoint.pt.sha256"
        return replace(one, sha256=digest.read_text(encoding="utf-8"), tarball=path.read_bytes())

    def without_run(one: HandedIn) -> HandedIn:
        new = {"experiment.py": one.source.encode()}
        tarball = repacked(right.tarball, student=one.student, change=lambda files: files.update(new))
        return replace(one, sha256=right.sha256, tarball=tarball)

    with ThreadPoolExecutor(jobs) as pool:
        made = list(pool.map(with_run, written()))
    right = next(one for one in made if one.kind == "right")
    return [one if one.tarball else without_run(one) for one in made]


def student_notebook(handed_out: Path, one: HandedIn) -> str:
    """Return the instructor's notebook with the student's experiment in the cell that writes its file.

    Whatever is executed in a notebook is the student's, so the hostile lines also get a cell of their own.
    """
    notebook = json.loads(handed_out.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    place = next(index for index, cell in enumerate(cells) if cell["id"] == "experiment")
    cells[place]["source"] = "%%writefile experiment.py\n" + one.source
    if one.hostile:
        cells.insert(place + 1, {**cells[place], "id": "own", "metadata": {}, "source": one.hostile})
    return json.dumps(notebook, indent=1)


def write_files(folder: Path, one: HandedIn) -> None:
    """Write the two files that a student uploads to a tool that takes files."""
    folder.mkdir(parents=True)
    (folder / "experiment.py").write_text(one.source, encoding="utf-8")
    (folder / "checkpoint.pt.sha256").write_text(one.sha256, encoding="utf-8")


def activated(python: Path, folder: Path) -> dict[str, str]:
    """Return the variables of a shell with this environment activated; a tool's own files go to `folder`."""
    outside = ("PYTHON", "JUPYTER", "IPYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    jupyter = [f"JUPYTER_{name}_DIR" for name in ("CONFIG", "DATA", "RUNTIME")]
    own = {name: str(folder / "own" / name.lower()) for name in (*jupyter, "IPYTHONDIR", "TRAINWRECK_REPLAYS")}
    return {**kept, "PATH": path, "VIRTUAL_ENV": str(python.parent.parent), **own}


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def trainwreck(jobs: int) -> Tool:
    """Return this suite: `grader score` for the class."""

    def prepare(_: Path, folder: Path, handed_in: Sequence[HandedIn]) -> None:
        (folder / "submissions").mkdir(parents=True)
        for one in handed_in:
            (folder / "submissions" / f"{one.student}_{RECIPE}.tar.gz").write_bytes(one.tarball)

    def words(python: Path, _: Path, __: str) -> Sequence[str | Path]:
        return (python, "-P", "-m", "grader", "score", "submissions", "--jobs", str(jobs))

    return Tool(
        "trainwreck", version("trainwreck"), "bubblewrap; the checks are outside of it",
        f"a command for the class, {jobs} in parallel", "20 for the fix, of 100", prepare, words,
        lambda folder, student: our_verdict(_text(folder / "reports" / "scores.json"), student),
        together=True, isolates=True,
    )  # fmt: skip


def our_verdict(text: str, student: str) -> Verdict | Lost:
    """Return the points for the fix in `scores.json`; 0 if the whole submission was rejected."""
    for row in json.loads(text)["submissions"] if text else []:
        if row["student"] == student:
            fix = row["criteria"].get("fix")
            return Verdict(row["total"], FIX_POINTS) if fix is None else Verdict(fix["points"], fix["max"])
    return Lost("no result: no row in scores.json")


def _nbgrader_prepare(python: Path, folder: Path, handed_in: Sequence[HandedIn]) -> None:
    source = folder / "source" / RECIPE
    source.mkdir(parents=True)
    shutil.copy(CHECKS / "nbgrader" / "nbgrader_config.py", folder)
    shutil.copy(CHECKS / "nbgrader" / NOTEBOOK, source)
    shutil.copy(CHECKS / "experiment_run.py", source)
    words = (python.with_name("nbgrader"), "generate_assignment", RECIPE)
    run(words, activated(python, folder), folder)
    for one in handed_in:
        place = folder / "submitted" / one.student / RECIPE
        place.mkdir(parents=True)
        released = folder / "release" / RECIPE / NOTEBOOK
        (place / NOTEBOOK).write_text(student_notebook(released, one), encoding="utf-8")
        (place / "checkpoint.pt.sha256").write_text(one.sha256, encoding="utf-8")


def _nbgrader_words(_: Path, __: Path, ___: str) -> Sequence[str | Path]:
    return ("bash", "-c", f"nbgrader autograde {RECIPE}; nbgrader export --to grades.csv")


def _nbgrader_verdict(folder: Path, student: str) -> Verdict | Lost:
    graded = (folder / "autograded" / student / RECIPE / NOTEBOOK).is_file()
    return nbgrader_verdict(_text(folder / "grades.csv"), student, graded=graded)


def nbgrader_verdict(table: str, student: str, *, graded: bool) -> Verdict | Lost:
    """Return what `grades.csv` says. A notebook that could not be executed has a row of zeros there all the same."""
    row = {row["student_id"]: row for row in csv.DictReader(io.StringIO(table))}.get(student)
    if not graded:
        said = "no row" if row is None else f"{float(row['score']):g} of {float(row['max_score']):g}"
        return Lost(f"no result: not graded; its gradebook says {said}")
    if row is None:
        return Lost("no result: no row in its gradebook")
    return Verdict(float(row["score"]), float(row["max_score"]))


def _otter_prepare(python: Path, folder: Path, handed_in: Sequence[HandedIn]) -> None:
    shutil.copytree(CHECKS / "otter" / "tests", folder / "tests")
    shutil.copy(CHECKS / "experiment_run.py", folder)
    options = ("-t", "tests", "-o", "autograder.zip", "experiment_run.py")
    words = (python.with_name("otter"), "generate", *options)
    run(words, activated(python, folder), folder)
    (folder / "handed_in").mkdir()
    for one in handed_in:
        (folder / "results" / one.student).mkdir(parents=True)
        with zipfile.ZipFile(folder / "handed_in" / f"{one.student}.zip", "w") as archive:
            archive.writestr(NOTEBOOK, student_notebook(CHECKS / "otter" / NOTEBOOK, one))
            archive.writestr("checkpoint.pt.sha256", one.sha256)


def _otter_words(python: Path, _: Path, student: str) -> Sequence[str | Path]:
    otter = python.with_name("otter")
    return (otter, "run", "-o", f"results/{student}", "--no-logo", f"handed_in/{student}.zip")


def _check50_prepare(_: Path, folder: Path, handed_in: Sequence[HandedIn]) -> None:
    shutil.copytree(CHECKS / "check50", folder / "checks")
    shutil.copy(CHECKS / "experiment_run.py", folder / "checks")
    (folder / "results").mkdir()
    for one in handed_in:
        write_files(folder / "handed_in" / one.student, one)


def _check50_words(python: Path, folder: Path, student: str) -> Sequence[str | Path]:
    output = folder / "results" / f"{student}.json"
    return (python.with_name("check50"), "--dev", "-o", "json", "--output-file", output, folder / "checks")


def check50_verdict(text: str) -> Verdict | Lost:
    """Return how many checks passed by the output of `-o json`; a check that could not run counts as failed."""
    if not text.strip():
        return Lost("no result: no output")
    found = json.loads(text)
    if "error" in found:
        return Lost(f"no result: {found['error']['type']}")
    return Verdict(sum(bool(check["passed"]) for check in found["results"]), len(found["results"]))


def _gradescope_prepare(_: Path, folder: Path, handed_in: Sequence[HandedIn]) -> None:
    for one in handed_in:
        autograder = folder / one.student
        shutil.copytree(CHECKS / "gradescope", autograder / "source")
        shutil.copy(CHECKS / "experiment_run.py", autograder / "source")
        (autograder / "results").mkdir()
        write_files(autograder / "submission", one)


def _gradescope_words(python: Path, _: Path, __: str) -> Sequence[str | Path]:
    return (python, "source/run_tests.py")


def gradescope_verdict(text: str) -> Verdict | Lost:
    """Return the sum of a `results.json` in Gradescope's form; Otter writes the same form."""
    if not text.strip():
        return Lost("no result: no results.json")
    tests = [test for test in json.loads(text)["tests"] if "max_score" in test]
    return Verdict(sum(test["score"] for test in tests), sum(test["max_score"] for test in tests))


_KERNEL, _EACH = "a kernel, of submission and checks", "a command for each submission"
PEERS = (
    Tool("nbgrader", "nbgrader==0.9.6", _KERNEL, "a command for the class, one after the other", "10",
         _nbgrader_prepare, _nbgrader_words, _nbgrader_verdict, together=True),
    Tool("otter-grader", "otter-grader[grading]==7.0.0",
         f"{_KERNEL}; with `otter grade` a container around both", _EACH, "10", _otter_prepare, _otter_words,
         lambda folder, name: gradescope_verdict(_text(folder / "results" / name / "results.json"))),
    Tool("check50", "check50==3.5.0", "a folder of its own", _EACH, "4 checks", _check50_prepare, _check50_words,
         lambda folder, name: check50_verdict(_text(folder / "results" / f"{name}.json")), place="handed_in/{}"),
    Tool("gradescope-utils", "gradescope-utils==0.5.0", "on the platform a container, around submission and checks",
         _EACH, "10", _gradescope_prepare, _gradescope_words,
         lambda folder, name: gradescope_verdict(_text(folder / name / "results" / "results.json")), place="{}"),
)  # fmt: skip


def ready_environment(name: str, pin: str, folder: Path) -> Path:
    """Return the Python of a tool's environment below `folder`: its pin, and a student's kit of this suite.

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


def run_watched(
    words: Sequence[str | Path], folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[float, int | None, str]:
    """Run a command for at most `limit` seconds; return its wall seconds, its status (None: ended), its output.

    What it started ends with it, also in sessions of its own.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        start = perf_counter()
        process = psutil.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT
        )
        try:
            status: int | None = process.wait(timeout=limit)
        except psutil.TimeoutExpired:
            status = None
            everything = [*process.children(recursive=True), process]
            for one in everything:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(everything, timeout=10)
        seconds = perf_counter() - start
        printed.seek(0)
        return seconds, status, printed.read()


def measure(tool: Tool, python: Path, handed_in: Sequence[HandedIn], folder: Path) -> Measured:
    """Grade the honest submissions twice, then the hostile ones, below an empty folder.

    A tool with one command for the class then grades all ten together: that shows what a hostile one does to others.
    Raises `BenchmarkError` if an honest one has no result among themselves: the tool is not set up correctly.
    """
    honest = [one for one in handed_in if not one.hostile]
    alone, mixed = folder / "alone", folder / "mixed"
    tool.prepare(python, alone, honest)
    seconds, found = _graded(tool, python, alone, honest)
    for one, outcome in zip(honest, found, strict=True):
        if isinstance(outcome.verdict, Lost):
            raise BenchmarkError(f"{tool.name} has no result for {one.student}: {outcome.verdict.says}")
    again, _ = _graded(tool, python, alone, honest)
    late = handed_in if tool.together else [one for one in handed_in if one.hostile]
    tool.prepare(python, mixed, late)
    rest = _graded(tool, python, mixed, late)[1]
    return Measured(tool, seconds / len(honest), again / len(honest), tuple(rest if tool.together else found + rest))


def _graded(tool: Tool, python: Path, folder: Path, handed_in: Sequence[HandedIn]) -> tuple[float, list[Outcome]]:
    total, found = 0.0, list[Outcome]()
    for group in [handed_in] if tool.together else [[one] for one in handed_in]:
        names = [one.student for one in group]
        place = folder / tool.place.format(names[0])
        environment = {**activated(python, folder), "AUTOGRADER": str(place)}
        words = tool.words(python, folder, names[0])
        seconds, status, output = run_watched(words, place, environment, LIMIT_SECONDS * len(group))
        total += seconds
        how = "did not return" if status is None else f"status {status}"
        click.echo(f"{tool.name}: {', '.join(names)}: {seconds:.1f} s, {how}", err=True)
        (folder / f"{'_'.join(names)}.log").write_text(output, encoding="utf-8")
        hung = Lost(f"never returned: ended after {LIMIT_SECONDS:g} s, no result")
        found += [Outcome(one.kind, hung if status is None else tool.verdict(folder, one.student)) for one in group]
    return total, found


def outcome_cell(outcome: Outcome) -> str:
    """Return what became of one submission in a few words."""
    if isinstance(outcome.verdict, Lost):
        return outcome.verdict.says
    if outcome.verdict.points is None:
        return "no points: left to the instructor"
    return f"{outcome.verdict.points:g} of {outcome.verdict.maximum:g}"


def _full_points(outcomes: Sequence[Outcome]) -> int:
    return sum(isinstance(one.verdict, Verdict) and one.verdict.points == one.verdict.maximum for one in outcomes)


def _share(outcomes: Sequence[Outcome]) -> str:
    return f"{_full_points(outcomes)} of {len(outcomes)}"


def lost(measured: Measured) -> list[str]:
    """Return what a tool lost: results by the kind of submission, and full points to the one that cheats."""
    missing = [one.kind for one in measured.outcomes if isinstance(one.verdict, Lost)]
    given = ["all points, to the one that cheats"] if _full_points(measured.of("cheats")) else []
    return [f"the result of: {kind}" for kind in dict.fromkeys(missing)] + given


def table(columns: Sequence[Measured]) -> list[list[str]]:
    """Return the rows of the table, the heading first."""
    rows: list[tuple[str, Callable[[Measured], str]]] = [
        ("", lambda one: f"{one.tool.name} {one.tool.pin.rpartition('==')[2]}"),
        ("isolates a submission from its checks", lambda one: "yes" if one.tool.isolates else "no"),
        ("what is around a submission", lambda one: one.tool.around),
        ("how it grades", lambda one: one.tool.grades),
        ("wall time a submission", lambda one: f"{one.first:.2f} s"),
        ("the same again, unchanged", lambda one: f"{one.again:.2f} s"),
        ("points", lambda one: one.tool.points),
        ("right fixes with all points", lambda one: _share(one.of("right"))),
        ("wrong fixes with all points", lambda one: _share(one.of("wrong"))),
        ("exits early", lambda one: outcome_cell(*one.of("exits"))),
        ("loops for ever", lambda one: outcome_cell(*one.of("loops"))),
        ("cheats", lambda one: outcome_cell(*one.of("cheats"))),
        ("lost", lambda one: "; ".join(lost(one)) or "nothing"),
    ]
    return [[what, *map(cell, columns)] for what, cell in rows]


def kept(ours: str, columns: Sequence[Measured]) -> bool:
    """Return whether the tool of this name is the fastest that isolates, and the only one that lost nothing."""
    fastest = min((one for one in columns if one.tool.isolates), key=lambda one: one.first, default=None)
    return (
        fastest is not None
        and fastest.tool.name == ours
        and [one.tool.name for one in columns if not lost(one)] == [ours]
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--envs", type=click.Path(path_type=Path, file_okay=False), default=Path.home() / ".cache" / "trainwreck" / "peers",
    help="Where the environments lie.",
)  # fmt: skip
@click.option("--write", is_flag=True, help=f"Write the table into {PAGE.parent.name}/{PAGE.name}, too.")
def main(envs: Path, write: bool) -> None:
    """Grade the same ten submissions with this suite and with its peers."""
    machine, jobs = this_machine(), usable_cores()
    try:
        if problem := sandbox_problem():
            raise BenchmarkError(problem)
        pythons = [(trainwreck(jobs), Path(sys.executable))]
        for tool in PEERS:
            click.echo(f"{tool.name}: its environment ...", err=True)
            pythons.append((tool, ready_environment(tool.name, tool.pin, envs.resolve())))
        with tempfile.TemporaryDirectory(prefix="trainwreck-peers-") as scratch:
            click.echo("the ten submissions, each with its runs ...", err=True)
            handed_in = make_submissions(Path(scratch) / "made", jobs)
            columns = [measure(tool, python, handed_in, Path(scratch) / tool.name) for tool, python in pythons]
    except (BenchmarkError, UserError) as error:
        raise click.ClickException(str(error)) from None
    heading, *rows = table(columns)
    shown = Table(*heading, show_lines=True)
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)
    if write:
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        write_section("peers", f"{markdown_table(heading, rows)}\n\nMeasured on {date}: {machine}.")
    sys.exit(0 if kept("trainwreck", columns) else 1)


if __name__ == "__main__":
    main()
