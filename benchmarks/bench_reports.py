"""`make bench-reports`: does triage find faults that nobody here wrote?

Each folder of `tests/data/reports` rebuilds one public bug report in the style of its reporter: `experiment.py` is the
broken program, `report.toml` has the address, the cause and the edits that correct it. The benchmark makes all checks
of triage on both programs, and compares the area of the cause with the areas that the unsound outcomes point at. Takes
ten minutes on an idle machine; docs/reports.md holds the results. Exits with 1 unless every fault is found in its area
and no corrected program raises an alarm.
"""

import datetime
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import click
from pydantic import Field
from rich.console import Console
from rich.table import Table

from benchmarks.measure import markdown_table, this_machine, write_section
from harness.canonical_setup import apply_numerics, in_portable_environment, run_environment
from harness.checks import check_names, load_check, make_check
from harness.checks.core.finding import Outcome
from harness.errors import UserError
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import Edit, apply_edits
from harness.run.settings import RunSettings

REPORTS = Path(__file__).parent.parent / "tests" / "data" / "reports"
PAGE = Path(__file__).parent.parent / "docs" / "reports.md"
SEED = 42
CRASH = "crash"

Area = Literal["data", "pipeline", "model", "loss", "optimizer", "loop", "evaluation", "deployment"]
Verdict = Literal["area", "elsewhere", "vague", "silent"]

# The areas that an outcome points at: those of each place that its reading or its `look` names. An outcome that names
# no place is vague. The places are the functions of an experiment. A report without `predict` serves in `evaluate`.
PLACES: Mapping[str, tuple[Area, ...]] = {
    "load_data": ("data", "pipeline"),
    "prepare_batch": ("pipeline",),
    "build_model": ("model",),
    "compute_loss": ("loss",),
    "build_optimizer": ("optimizer",),
    "build_scheduler": ("optimizer", "loop"),
    "train_step": ("loop",),
    "end_epoch": ("loop", "deployment"),
    "evaluate": ("evaluation", "deployment"),
    "predict": ("deployment",),
    "save_checkpoint": ("loop", "deployment"),
    "load_checkpoint": ("loop", "deployment"),
}


class Report(StrictModel):
    """A public bug report, rebuilt. `broken` and `corrected` are what was measured of both programs."""

    id: str
    title: str
    addresses: list[str] = Field(min_length=1)
    area: Area
    cause: str
    dataset: str = "digits"
    measured: str = Field(min_length=1)
    broken: float
    corrected: float
    edit: list[Edit] = Field(min_length=1)

    @cached_property
    def source(self) -> str:
        """The broken program."""
        return (REPORTS / self.id / "experiment.py").read_text(encoding="utf-8")

    @cached_property
    def corrected_source(self) -> str:
        """The program with the edits applied."""
        return apply_edits(self.source, self.edit, where=self.id)


@dataclass(frozen=True)
class Result:
    """The unsound outcomes of a report's two programs, by check; `CRASH` stands for a check that raises an error."""

    report: Report
    broken: Mapping[str, str]
    corrected: Mapping[str, str]

    @property
    def verdict(self) -> Verdict:
        """Whether an unsound outcome of the broken program points at the area of the cause."""
        return self._verdict(self.broken)

    @property
    def told_apart(self) -> bool:
        """Whether an outcome that the corrected program does not have points at the area of the cause."""
        return self._verdict(dict(self.broken.items() - self.corrected.items())) == "area"

    def _verdict(self, outcomes: Mapping[str, str]) -> Verdict:
        found = {check: id for check, id in outcomes.items() if id != CRASH}
        areas = set[Area]().union(*(areas_of(load_check(check).outcome(id)) for check, id in found.items()))
        if self.report.area in areas:
            return "area"
        return "elsewhere" if areas else "vague" if found else "silent"

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the report's row."""
        link = f"[{self.report.title}]({self.report.addresses[0]})"
        found = "area, as on the corrected" if self.verdict == "area" and not self.told_apart else self.verdict
        return self.report.id, link, self.report.area, found, said(self.broken), said(self.corrected)


HEADINGS = ("id", "report", "area", "found", "triage of the broken program", "alarms on the corrected one")


def load_report(id: str) -> Report:
    """Return one report. Raises `UserError` for a file that is not as it should be."""
    return read_record(REPORTS / id / "report.toml", Report, id=id)


def load_reports() -> list[Report]:
    """Return all reports, sorted by id."""
    return [load_report(path.parent.name) for path in sorted(REPORTS.glob("*/report.toml"))]


def areas_of(outcome: Outcome) -> set[Area]:
    """Return the areas that an outcome points at; none for a sound one and for a vague one."""
    if outcome.sound:
        return set()
    text = f"{outcome.reading} {outcome.look}"
    return {area for place, areas in PLACES.items() if re.search(rf"\b{place}\b", text) for area in areas}


def triage_names() -> list[str]:
    """Return the names of the checks that triage makes, in its order."""
    return [name for name in check_names() if load_check(name).in_triage]


def unsound(report: Report, source: str) -> dict[str, str]:
    """Make all checks of triage on a program, and return those that are unsound or crash."""
    from harness.checks.core.subject import Subject
    from harness.data.loading import load_dataset

    settings = RunSettings(seed=SEED, dataset=report.dataset)
    subject = Subject(REPORTS / report.id / "experiment.py", source, settings, load_dataset(report.dataset))
    found = {}
    for name in triage_names():
        try:
            outcome = make_check(subject, name).outcome
        except Exception as error:
            click.echo(f"{report.id}, {name}: {type(error).__name__}: {str(error).splitlines()[0]}", err=True)
            outcome = CRASH
        if outcome == CRASH or not load_check(name).outcome(outcome).sound:
            found[name] = outcome
    return found


def said(found: Mapping[str, str]) -> str:
    """Return outcomes in words, or a dash."""
    return ", ".join(f"{check} {outcome}" for check, outcome in found.items()) or "-"


def triaged(reports: Iterable[Report]) -> Iterator[Result]:
    """Yield the result of each report, and show it on standard error."""
    for report in reports:
        result = Result(report, unsound(report, report.source), unsound(report, report.corrected_source))
        words = f"{said(result.broken)}; corrected: {said(result.corrected)}"
        click.echo(f"{report.id} ({report.area}): {result.verdict}: {words}", err=True)
        yield result


def summary(results: Sequence[Result]) -> list[list[str]]:
    """Return the rows of the summary, the heading first: how many reports of each area have each verdict."""
    verdicts: tuple[Verdict, ...] = ("area", "elsewhere", "vague", "silent")
    rows = [["area of the cause", "reports", *verdicts, "area, and not on the corrected", "crash", "alarms"]]
    areas = dict.fromkeys(area for places in PLACES.values() for area in places)
    for area in (*areas, "all"):
        those = [one for one in results if area in ("all", one.report.area)]
        counts = Counter(one.verdict for one in those)
        crashes = sum(CRASH in one.broken.values() for one in those)
        alarms = sum(set(one.corrected.values()) - {CRASH} != set() for one in those)
        found = (*(counts[verdict] for verdict in verdicts), sum(one.told_apart for one in those))
        rows.append([area, *map(str, (len(those), *found, crashes, alarms))])
    return rows


def pointing() -> list[list[str]]:
    """Return a row for each unsound outcome of triage: the areas that it points at; the heading first."""
    rows = [["check", "outcome", "points at"]]
    for name in triage_names():
        for outcome in load_check(name).outcomes:
            if not outcome.sound:
                rows.append([name, outcome.id, ", ".join(sorted(areas_of(outcome))) or "vague"])
    return rows


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="ID", help="Only these reports.")
@click.option("--write", is_flag=True, help="Write the tables into docs/reports.md and docs/benchmarks.md.")
def main(only: tuple[str, ...], write: bool) -> None:
    """Triage the rebuilt public bug reports, broken and corrected."""
    if not in_portable_environment():  # torch reads these variables when it is imported
        words = [sys.executable, "-m", "benchmarks.bench_reports", *sys.argv[1:]]
        os.execve(sys.executable, words, run_environment("portable") | {"PYTHONPATH": str(PAGE.parent.parent)})
    apply_numerics("portable")
    machine = this_machine()
    try:
        results = list(triaged([load_report(id) for id in only] if only else load_reports()))
    except UserError as error:
        raise click.ClickException(str(error)) from None
    shown = Table(*HEADINGS, show_lines=True)
    for result in results:
        shown.add_row(*result.cells())
    heading, *rows = summary(results)
    total = Table(*heading)
    for row in rows:
        total.add_row(*row)
    console = Console()
    console.print(shown)
    console.print(total)
    if write:
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        measured = f"Measured on {date}: {machine}."
        write_section("reports", f"{markdown_table(heading, rows)}\n\n{measured}")
        write_section("reports", f"{markdown_table(HEADINGS, [one.cells() for one in results])}\n\n{measured}", PAGE)
        heading, *rows = pointing()
        write_section("pointing", markdown_table(heading, rows), PAGE)
    missed = any(one.verdict != "area" or one.corrected for one in results)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
