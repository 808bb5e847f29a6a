"""Shows what a course costs: as tables on a terminal, and as a section of `docs/benchmarks.md`."""

from collections.abc import Sequence
from datetime import date

from rich.console import Console
from rich.table import Table

from benchmarks.course.plan import ATTACK_EVERY, CLAIM_EVERY, FIXES, SEED, STUDENTS
from benchmarks.table import Machine, rows_as_markdown, show
from benchmarks.timing import Row
from grader.replay.request import RUN_LIMITS

TITLE = f"A course of {STUDENTS} students"
HOW = (
    "Wall-clock times of whole processes, from the start of `grader score` to its end, all reports written; a time of"
    " several rounds is their median. Every class that was timed was looked at as well: where a row is missing, or has"
    " other points than its fix, its claims or its attack must have, nothing is reported."
)
_NOTES = (
    f"The course is made by `benchmarks/course/` from the seed {SEED}: of each recipe {FIXES} fixes of"
    " `solutions/<id>/variants.toml`, of all verdicts, the reference most often and the last of them by two or three"
    " students in 300. Both runs of each fix are really made, once, by the harness's own commands. Every student hands"
    " them in under an experiment and a report of his own: other comments, blank lines and quotation marks, an"
    " explanation of `texts.toml` with own sentences, own numbers out of the log. No two tarballs are equal.",
    f"One in {CLAIM_EVERY} claims what is not true: a log with a better end, the checkpoint or the whole run of another"
    f" fix, a hash that is not the file's. One in {ATTACK_EVERY} is hostile, in turns: what the intake refuses (paths"
    " that climb, a link, a bomb, a log without end, a truncated file, no tarball), and code that runs: it ends the"
    " process, raises, forks without end, prints without end, or patches what records it. Those leave no replay that"
    f" others share. One endless loop in the whole course takes its full {RUN_LIMITS.cpu_seconds} s of processor"
    " time; more of them would measure that limit. None takes all memory, since the worker's memory would then be that"
    " limit.",
    "From cold: nothing is remembered, neither replays nor scores; the tarballs were just made, so that they lie in the"
    " system's cache.",
    "The trainings by themselves: each program that the course makes the grader train, the broken run and the reference"
    " fix (twice) of each recipe among them, in the grader's own sandbox, one at a time with nothing beside it. The"
    " clock runs in `harness.trainer.train` alone: not while Python forks, data is loaded, probes are measured, or"
    " weights are evaluated. Attacks do not count.",
    "One more submission: `grader score` of a class with one new tarball, less the same without it, in turns.",
    "Two workers against one: `--jobs 2` against `--jobs 1`, which decides about replays, taking in, scoring and pages"
    " alike, on the same two cores.",
    "Memory is what is resident. Of a page that a fork shares with the process it came from each has its half, so that"
    " it is counted once; pages of libraries count whole.",
    "The browser's times are those of the page's own clock, from the navigation or the press to the second frame after"
    " it.",
)


def show_class(
    rows: Sequence[Row], sizes: Sequence[tuple[str, ...]], machine: Machine, console: Console
) -> None:
    """Print the table of targets, and the one of sizes where there is one."""
    show(rows, machine, console, title=TITLE, how=HOW)
    if sizes:
        table = Table(title="By size of the class", title_justify="left")
        for heading in sizes[0]:
            table.add_column(heading, justify="right")
        for line in sizes[1:]:
            table.add_row(*line)
        console.print(table)


def as_section(rows: Sequence[Row], sizes: Sequence[tuple[str, ...]], machine: Machine) -> str:
    """Return the section of `docs/benchmarks.md`."""
    lines = [
        f"## {TITLE}",
        "",
        f"Made by `make bench-class` (`python -m benchmarks.bench_class --write`) on {date.today().isoformat()}.",
        "",
        *rows_as_markdown(rows, machine),
        "",
        "By size of the class:",
        "",
        "| " + " | ".join(sizes[0]) + " |",
        "| " + " | ".join("---:" for _ in sizes[0]) + " |",
        *("| " + " | ".join(line) + " |" for line in sizes[1:]),
        "",
        HOW,
        "",
        *(f"- {note}" for note in _NOTES),
    ]
    return "\n".join(lines) + "\n"
