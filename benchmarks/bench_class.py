"""`make bench-class`: what a course of 2,100 submissions costs, in one table; exits 1 where a target is missed.

Progress goes to standard error. A smaller course is for trying things out: the targets are those of the whole one.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from benchmarks.class_lab import ClassLab
from benchmarks.class_page import as_section, show_class
from benchmarks.class_size import one_more_rows, size_rows, size_table, unchanged_rows, worker_rows
from benchmarks.course.plan import STUDENTS
from benchmarks.page import PAGE, replace_section
from benchmarks.table import as_json, this_machine
from benchmarks.timing import BenchmarkError, Row
from grader.replay.cache import default_folder
from grader.sandbox import sandbox_problem
from harness.errors import UserError


def _page(lab: ClassLab) -> list[Row]:
    from benchmarks.browser_time import page_rows  # it needs selenium
    from grader.report.write import INDEX

    size = len(lab.entries)
    lab.cold(size)
    return page_rows(lab.reports(size) / INDEX, size)


def _engines(lab: ClassLab) -> list[Row]:
    from benchmarks.engine_time import engine_rows

    return engine_rows()


BENCHMARKS: dict[str, Callable[[ClassLab], list[Row]]] = {
    "sizes": size_rows,
    "unchanged": unchanged_rows,
    "one-more": one_more_rows,
    "workers": worker_rows,
    "engines": _engines,
    "page": _page,
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--students", type=click.IntRange(min=1), default=STUDENTS, show_default=True, help="How large a course."
)
@click.option("--only", type=click.Choice(list(BENCHMARKS)), help="Measure this one thing.")
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the course is made, and kept: 10 GB. By default beside the memory of replays.",
)
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON object, every round included.")
@click.option("--write", is_flag=True, help=f"Write its section of {PAGE.parent.name}/{PAGE.name} too.")
def main(students: int, only: str | None, scratch: Path | None, json_wanted: bool, write: bool) -> None:
    """Measure what grading a whole course costs, and exit 1 where a target is missed."""
    if write and (only or students != STUDENTS):
        raise click.UsageError(
            "--write makes the section of the whole course: leave --only and --students out."
        )
    if problem := sandbox_problem():
        raise click.ClickException(problem)
    machine = this_machine()
    lab = ClassLab(students, (scratch or default_folder().parent / "bench-class").resolve(), _said)
    rows = []
    for name in [only] if only else BENCHMARKS:
        _said(f"{name} ...")
        try:
            rows += BENCHMARKS[name](lab)
        except (BenchmarkError, UserError) as error:
            raise click.ClickException(str(error)) from None
    sizes = size_table(lab) if only in (None, "sizes") else []
    if json_wanted:
        click.echo(as_json(rows, machine))
    else:
        show_class(rows, sizes, machine, Console())
    if write:
        replace_section(PAGE, "class", as_section(rows, sizes, machine))
    sys.exit(0 if all(row.met for row in rows) else 1)


def _said(message: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {message}", err=True)


if __name__ == "__main__":
    main()
