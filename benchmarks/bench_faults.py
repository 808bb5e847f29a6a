"""`make bench-faults`: find faults of public reports, and injected faults, by watching ordinary scripts.

Each folder in `tests/data/scripts` rebuilds one public report as a script with its own loop; the README there describes
the files. The benchmark watches the broken and the corrected script. With `PROGRAMS=folder` it also watches public
programs with the faults of `injected.json`. The results are in docs/watched.md.

A finding counts if the sound program does not have it. It names the fault if its line is at most two lines from an
edited line, or if its check belongs to the area of the cause.
"""

import difflib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import click
from pydantic import Field

from benchmarks.bench_watch import PAGE, watch_program
from benchmarks.measure import ROOT, merge, publish, read_table, row_note, this_machine
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import Area, Edit, apply_edits
from trainwreck import __version__
from trainwreck.checks import ALL

SCRIPTS = ROOT / "tests" / "data" / "scripts"
HELD_OUT = ROOT / "tests" / "data" / "held_out"  # never used to write or repair a check
_NEAR, _SECONDS = 2, 300
_LEVELS = {f"{check.name}/{name}": outcome.level for check in ALL for name, outcome in check.outcomes.items()}
_AREA, _VERDICT, _SOUND = -4, -3, -1  # the places of cells, from the end of a row
# The areas that the outcomes of a check point at, or one of its outcomes. A check that is missing here points at none.
AREAS: Mapping[str, tuple[Area, ...]] = {
    "gradients": ("loop", "optimizer"),
    "ownership": ("optimizer", "model"),
    "scaling": ("loop",),
    "accumulation": ("loop",),
    "precision": ("loop",),
    "schedule": ("optimizer", "loop"),
    "update-size": ("optimizer",),
    "decay": ("optimizer",),
    "flow": ("model",),
    "graphs": ("loop", "loss"),
    "modes": ("loop", "evaluation"),
    "modes/own-train-unused": ("model", "loop"),
    "dropout": ("model",),
    "batch-norm": ("model",),
    "batch-norm/not-copied": ("loop",),
    "snapshots": ("loop", "evaluation"),
    "saving": ("deployment", "loop"),
    "loss-form": ("loss", "model"),
    "loss-form/targets-outside": ("loss", "data"),
    "shapes": ("loss", "evaluation"),
    "outputs": ("model",),
    "first-loss": ("loss", "model"),
    "finite": ("loss", "model", "data"),
    "labels": ("data", "loss"),
    "order": ("pipeline", "data"),
    "workers": ("pipeline",),
    "inputs": ("pipeline", "data"),
    "inputs/own-statistics": ("pipeline", "deployment"),
    "evaluation": ("evaluation",),
    "evaluation/trains-on-validation": ("loop",),
    "evaluation/trains-in-each-phase": ("loop",),
    "symmetry": ("model",),
    "layers": ("model",),
    "replicas": ("loop",),
    "mixing": ("model",),
    "tokens": ("model", "pipeline", "loss"),
    "validation": ("data", "pipeline", "evaluation"),
    "metric": ("evaluation",),
    "pairs": ("pipeline", "data"),
    "log": ("evaluation",),
    "storage": ("pipeline", "data"),
    "activations": ("model",),
    "targets": ("loss", "data"),
    "progress": ("optimizer", "pipeline", "data"),
    "repeat": ("loop", "pipeline"),
}


class Fault(StrictModel):
    """A rebuilt fault and the addresses of its reports. `broken` and `corrected` are one figure of the two scripts."""

    id: str
    title: str
    addresses: list[str]
    task: str
    area: Area
    cause: str
    symptom: str
    broken: float
    corrected: float
    edit: list[Edit] = Field(min_length=1)

    @property
    def report(self) -> str:
        """The title, with a link to the first report if one was opened."""
        return f"[{self.title}]({self.addresses[0]})" if self.addresses else self.title

    def sources(self, folder: Path = SCRIPTS) -> tuple[str, str]:
        """Return the source of the broken and of the corrected script of a set of faults."""
        source = (folder / self.id / "train.py").read_text(encoding="utf-8")
        return source, apply_edits(source, self.edit, where=self.id)


class Result(NamedTuple):
    """What the watch found in a broken program and not in the sound one, and what it found in the sound one.

    lines: the numbers of the edited lines of the broken program.
    """

    name: str
    area: Area
    lines: frozenset[int]
    found: Sequence[Mapping[str, Any]]
    alarms: Sequence[str]
    advice: Sequence[str]
    failure: str

    @property
    def verdict(self) -> str:
        """Return "named", "elsewhere" or "silent"."""
        if not self.found:
            return "silent"
        return "named" if any(map(self._names, self.found)) else "elsewhere"

    def _names(self, finding: Mapping[str, Any]) -> bool:
        line = finding["place"]["line"]
        is_near = line and any(abs(line - own) <= _NEAR for own in self.lines)
        return bool(is_near) or self.area in AREAS.get(_outcome(finding), AREAS.get(finding["check"], ()))

    def cells(self, *more: str) -> list[str]:
        """Return the cells of the row of this result."""
        listed = ", ".join(sorted(set(map(_outcome, self.found)))) or "-"
        return [self.name, *more, self.area, self.verdict, listed, ", ".join([*self.alarms, *self.advice]) or "-"]


def _outcome(finding: Mapping[str, Any]) -> str:
    return f"{finding['check']}/{finding['outcome']}"


def compare(
    name: str, area: Area, lines: frozenset[int], broken: Mapping[str, Any], sound: Mapping[str, Any]
) -> Result:
    """Return the result of two watched programs. Notes do not count."""
    known = {_outcome(one) for one in sound["findings"]}
    found = [one for one in broken["findings"] if one["level"] != "note" and _outcome(one) not in known]
    alarms, advice = (
        sorted({_outcome(one) for one in sound["findings"] if one["level"] == level}) for level in ("alarm", "advice")
    )
    return Result(name, area, lines, found, alarms, advice, broken.get("failure", ""))


def changed_lines(broken: str, sound: str) -> frozenset[int]:
    """Return the numbers of the lines of the broken program that differ, or beside which lines are missing."""
    found: set[int] = set()
    matcher = difflib.SequenceMatcher(None, broken.splitlines(), sound.splitlines(), autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag != "equal":
            found.update(range(first + 1, last + 1) if last > first else (first, first + 1))
    return frozenset(found)


def watch_source(source: str) -> dict[str, Any]:
    """Watch a script in a folder of its own, and return the JSON result of the command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "trainwreck", "--json", "train.py"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {"steps": 0, "findings": []}
        return found


def summary(results: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows of the summary, beginning with the heading. results: cells of results."""
    rows = [["area of the cause", "faults", "named", "elsewhere", "silent", "alarm on the sound one", "advice on it"]]
    for area in (*get_args(Area), "all"):
        those = [one for one in results if area in ("all", one[_AREA])]
        counts = Counter(one[_VERDICT] for one in those)
        levels = [{_LEVELS.get(name) for name in one[_SOUND].split(", ")} for one in those]
        told = (sum(level in found for found in levels) for level in ("alarm", "advice"))
        rows.append(
            [area, *map(str, (len(those), *(counts[kind] for kind in ("named", "elsewhere", "silent")), *told))]
        )
    return rows


def rivals(records: Sequence[Mapping[str, Any]], results: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the rows that compare other tools with these results on the same scripts, beginning with the heading.

    records: what a tool says of a script, from `rivals.json`: the kinds of its messages on the broken and on the
    corrected script. A tool finds a fault if it says something new on the broken script. results: cells of results.
    """
    rows = [["tool", "version", "lines that a user writes (median)", "found", "of", "speaks on corrected ones"]]
    shared = {record["id"] for record in records}
    ours = [one for one in results if one[0] in shared]
    found, told = sum(one[_VERDICT] != "silent" for one in ours), sum(one[_SOUND] != "-" for one in ours)
    rows.append(["trainwreck", __version__, "0", *map(str, (found, len(ours), told))])
    for tool in dict.fromkeys(record["tool"] for record in records):
        those = [record for record in records if record["tool"] == tool]
        new = sum(bool(set(one["broken"]) - set(one["corrected"])) for one in those)
        told, lines = sum(bool(one["corrected"]) for one in those), median(one["lines"] for one in those)
        rows.append([tool, those[0]["version"], f"{lines:g}", *map(str, (new, len(those), told))])
    return rows


def load_faults(folder: Path = SCRIPTS) -> list[Fault]:
    """Return all rebuilt reports of a set, sorted by id. Raises `UserError` for an invalid file."""
    return [read_record(path, Fault, id=path.parent.name) for path in sorted(folder.glob("*/fault.toml"))]


def measure_reports(faults: Sequence[Fault], folder: Path) -> list[Result]:
    """Watch both scripts of each report."""
    results = []
    for fault in faults:
        broken, sound = fault.sources(folder)
        both = watch_source(broken), watch_source(sound)
        results.append(compare(fault.id, fault.area, changed_lines(broken, sound), *both))
        click.echo("  ".join(results[-1].cells()), err=True)
    return results


def measure_injected(folder: Path, only: Collection[str] = ()) -> list[Result]:
    """Watch each public program as it is, and with each of its faults. only: the names of programs, or none for all."""
    results: list[Result] = []
    sound: dict[str, Mapping[str, Any]] = {}
    for fault in json.loads((folder / "injected.json").read_bytes()):
        program, file = folder / fault["program"], fault["file"]
        if only and fault["program"] not in only:
            continue
        if fault["program"] not in sound:
            sound[fault["program"]] = watch_program(program)
        text = (program / file).read_text(encoding="utf-8")
        edited = text.replace(fault["old"], fault["new"])
        lines = changed_lines(edited, text)
        found = watch_program(program, {file: edited})
        results.append(compare(fault["id"], fault["area"], lines, found, sound[fault["program"]]))
        click.echo("  ".join(results[-1].cells()), err=True)
    return results


@click.command()
@click.option("--only", default="", help="ids of reports and names of programs, separated by spaces")
@click.option("--programs", type=click.Path(exists=True, file_okay=False, path_type=Path), help="also injected faults")
@click.option("--held-out", is_flag=True, help="watch the faults that no check was written for")
@click.option("--write", is_flag=True, help=f"write the tables to {PAGE.relative_to(ROOT)}")
def main(only: str, programs: Path | None, *, held_out: bool, write: bool) -> None:
    """Watch the scripts of public reports, and print what was found.

    With `--only`, the tables keep the rows of the other reports and programs from the page.
    """
    folder, section = (HELD_OUT, "held out") if held_out else (SCRIPTS, "faults")
    faults, chosen = load_faults(folder), only.split()
    tasks = {fault.id: (fault.report, fault.task) for fault in faults}
    results = measure_reports([fault for fault in faults if not chosen or fault.id in chosen], folder)
    new = [one.cells(*tasks[one.name]) for one in results]
    rows = publish_reports(section, new, [fault.id for fault in faults], write=write)
    if not held_out:
        records = json.loads((Path(__file__).parent / "rivals.json").read_bytes())
        publish("rivals", *_split(rivals(records, rows)), this_machine(), write=write, page=PAGE)
    if programs is not None:
        publish_injected([one.cells() for one in measure_injected(programs, chosen)], write=write)


def publish_reports(
    section: str, new: Sequence[Sequence[str]], names: Sequence[str], *, write: bool
) -> Sequence[Sequence[str]]:
    """Print the tables of reports, with these new rows and the other rows of the page, and write them if asked to.

    Return the rows. names: the ids of all faults of the set.
    """
    rows = merge(read_table(section, PAGE), new, names)
    heading = ("id", "report", "task", "area", "found", "only in the broken script", "in the corrected one")
    publish(section, heading, rows, this_machine(), write=write, note=row_note(new, rows), page=PAGE)
    name = f"{section.removesuffix('s')} summary"
    publish(name, *_split(summary(rows)), this_machine(), write=write, page=PAGE)
    return rows


def publish_injected(new: Sequence[Sequence[str]], *, write: bool) -> None:
    """Print the tables of injected faults like those of reports, and write them if asked to."""
    names = [fault["id"] for fault in json.loads((Path(__file__).parent / "injected.json").read_bytes())]
    rows = merge(read_table("injected", PAGE), new, names)
    heading = ("id", "area", "found", "only with the fault", "without it")
    publish("injected", heading, rows, this_machine(), write=write, note=row_note(new, rows), page=PAGE)
    publish("injected summary", *_split(summary(rows)), this_machine(), write=write, page=PAGE)


def _split(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    return rows[0], rows[1:]


if __name__ == "__main__":
    main()
