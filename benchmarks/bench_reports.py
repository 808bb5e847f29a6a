"""`make bench-reports`: measure whether `harness triage` finds faults from public bug reports.

Each folder in `tests/data/reports` rebuilds one public bug report in the style of its reporter; the README in
`tests/data/reports` describes the files. The benchmark runs all checks of `harness triage` on the broken and on the
corrected program. It compares the area of the cause with the areas to which the outcomes point that find a fault. An
outcome that a check gives for both programs does not count. The results are in docs/reports.md. The exit status is 0 if
every fault is found in its area and no check finds a fault in a corrected program, otherwise 1.
"""

import sys
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple, get_args

import click
from pydantic import Field

from benchmarks.judging import CRASH, Subject, Verdict, answers, areas_of, jobs_option, triage_checks, verdict
from benchmarks.measure import ROOT, markdown_table, publish, this_machine, write_section
from harness.formats.toml_file import StrictModel, read_record
from harness.recipes.recipe import Area, Edit, apply_edits
from harness.run.settings import RunSettings

REPORTS = ROOT / "tests" / "data" / "reports"
PAGE = ROOT / "docs" / "reports.md"
SEED = 42
HEADINGS = ("id", "report", "area", "found", "triage of the broken program", "alarms on the corrected one")


class Report(StrictModel):
    """A rebuilt public bug report. `broken` and `corrected` contain the measurements of the two programs."""

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
        """The source of the broken program."""
        return (REPORTS / self.id / "experiment.py").read_text(encoding="utf-8")

    @cached_property
    def corrected_source(self) -> str:
        """The source of the corrected program, which is the broken program with the edits applied."""
        return apply_edits(self.source, self.edit, where=self.id)

    def subjects(self) -> tuple[Subject, Subject]:
        """Return the broken and the corrected program, on which the checks run."""
        settings = RunSettings(seed=SEED, dataset=self.dataset)
        sound = Subject(f"{self.id}/corrected", self.corrected_source, settings)
        return Subject(self.id, self.source, settings, frozenset({self.area}), sound.name), sound


class Result(NamedTuple):
    """The outcomes that report a fault: one set for the broken program of a report, one for the corrected program."""

    report: Report
    broken: Collection[str]
    corrected: Collection[str]

    @property
    def verdict(self) -> Verdict:
        """Whether an outcome that only the broken program has points at the area of the cause."""
        return verdict({self.report.area}, self.broken, self.corrected)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the report's row in the result table."""
        link = f"[{self.report.title}]({self.report.addresses[0]})"
        broken, corrected = (", ".join(said) or "-" for said in (self.broken, self.corrected))
        return self.report.id, link, self.report.area, self.verdict, broken, corrected


def load_reports() -> list[Report]:
    """Return all reports, sorted by id. Raises `UserError` for an invalid file."""
    return [read_record(path, Report, id=path.parent.name) for path in sorted(REPORTS.glob("*/report.toml"))]


def summary(results: Sequence[Result]) -> list[list[str]]:
    """Return the rows of the summary, beginning with the heading: the number of reports by area and verdict."""
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    rows = [["area of the cause", "reports", *verdicts, CRASH, "alarms"]]
    for area in (*get_args(Area), "all"):
        those = [one for one in results if area in ("all", one.report.area)]
        counts = Counter(one.verdict for one in those)
        crashes = sum(any(said.endswith(CRASH) for said in one.broken) for one in those)
        alarms = sum(any(not said.endswith(CRASH) for said in one.corrected) for one in those)
        rows.append([area, *map(str, (len(those), *(counts[kind] for kind in verdicts), crashes, alarms))])
    return rows


def pointing() -> list[list[str]]:
    """Return a heading, and a row for each outcome that means a fault, with the areas to which the outcome points."""
    rows = [["check", "outcome", "points at"]]
    for check in triage_checks():
        for outcome in check.outcomes:
            if not outcome.sound:
                rows.append([check.name, outcome.id, ", ".join(sorted(areas_of(outcome))) or "vague"])
    return rows


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--only", multiple=True, type=click.Choice([path.name for path in sorted(REPORTS.iterdir())]), metavar="ID",
    help="Check only this report; may be repeated.",
)  # fmt: skip
@jobs_option
@click.option("--write", is_flag=True, help="Write the tables into docs/reports.md and docs/benchmarks.md.")
def main(only: tuple[str, ...], jobs: int, write: bool) -> None:
    """Run the checks of `harness triage` on the broken and corrected programs of the public bug reports."""
    machine = this_machine()
    reports = [one for one in load_reports() if not only or one.id in only]
    pairs = [one.subjects() for one in reports]
    found = answers([subject for pair in pairs for subject in pair], jobs)
    results = [
        Result(report, *(found[one.name].said for one in pair)) for report, pair in zip(reports, pairs, strict=True)
    ]
    publish("reports", HEADINGS, [one.cells() for one in results], machine, write=write, page=PAGE)
    heading, *rows = summary(results)
    publish("reports", heading, rows, machine, write=write)
    if write:
        heading, *rows = pointing()
        write_section("pointing", markdown_table(heading, rows), PAGE)
    sys.exit(1 if any(one.verdict != "area" or one.corrected for one in results) else 0)


if __name__ == "__main__":
    main()
