"""Measure the time of whole processes, and write the results as a table to the terminal and to a page in `docs/`."""

import datetime
import multiprocessing
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NoReturn
from unittest.mock import patch

import click
from rich.console import Console
from rich.table import Table

from grader.sandbox import sandbox_problem
from harness.canonical_setup import run_environment

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
HEADINGS = ("what", "measured", "target", "met", "details")


class BenchmarkError(click.ClickException):
    """Raised if a benchmark cannot give a result. The command prints the message, which says why, and exits with 1."""


class NoSandbox(BenchmarkError):
    """Raised if a benchmark needs a sandbox that does not start on this machine."""

    exit_code = 2


def need_sandbox() -> None:
    """Raise `NoSandbox` if a sandbox does not start on this machine."""
    if problem := sandbox_problem():
        raise NoSandbox(problem)


@dataclass(frozen=True)
class Row:
    """One measured number and its target, the largest allowed value.

    unit: "x" for a ratio, "s" for seconds, "MB" for memory.
    """

    what: str
    value: float
    unit: str
    target: float
    details: str

    @property
    def met(self) -> bool:
        """Return whether the measured number is at most its target."""
        return self.value <= self.target

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the row in the result table, in the order of `HEADINGS`."""
        target = f"at most {_figure(self.target, self.unit)}"
        return self.what, _figure(self.value, self.unit), target, "yes" if self.met else "NO", self.details


def run(
    words: Sequence[object], environment: Mapping[str, str] | None = None, folder: Path | None = None,
    *, allowed: Sequence[int] = (0,),
) -> str:  # fmt: skip
    """Run a command and return its standard output. Raises `BenchmarkError` if its status is not allowed."""
    texts = list(map(str, words))
    done = subprocess.run(texts, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise BenchmarkError(f"{' '.join(texts)} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def seconds_of(words: Sequence[object], environment: Mapping[str, str] | None = None) -> float:
    """Run a command in a new folder, and return the wall-clock time of the whole process in seconds."""
    with tempfile.TemporaryDirectory(prefix="trainwreck-bench-") as folder:
        start = perf_counter()
        run(words, os.environ if environment is None else environment, Path(folder))
        return perf_counter() - start


@contextmanager
def portable_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes that start with the environment variables for portable numerics.

    NumPy and torch read these variables when they are imported.
    """
    context = multiprocessing.get_context("spawn")
    with patch.dict(os.environ, run_environment("portable")), ProcessPoolExecutor(jobs, context) as pool:
        yield pool


def command_path(name: str) -> Path:
    """Return the path of an installed command. Raises `BenchmarkError` if it is missing."""
    path = Path(sysconfig.get_path("scripts")) / name
    if not path.is_file():
        raise BenchmarkError(f"There is no {path}: install the project with make, then run make bench.")
    return path


def interleaved(kinds: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Return {kind: seconds in each round}. Every round measures all kinds, in alternating order.

    So if other processes slow down the machine for a while, all kinds become slower by about the same factor. The first
    `warm_up` rounds fill caches and are not returned.
    """
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for index in range(warm_up + rounds):
        for kind in sorted(kinds, reverse=bool(index % 2)):
            took = kinds[kind]()
            if index >= warm_up:
                seconds[kind].append(took)
    return seconds


def ratio_row(what: str, target: float, seconds: Mapping[str, Sequence[float]], measured: str, yardstick: str) -> Row:
    """Return a row with the median ratio of two times, `measured` divided by `yardstick`, from the same round."""
    ratios = [a / b for a, b in zip(seconds[measured], seconds[yardstick], strict=True)]
    best = min(seconds[measured]) / min(seconds[yardstick])
    medians = f"{_time(median(seconds[measured]))} against {_time(median(seconds[yardstick]))}"
    return Row(
        what, median(ratios), "x", target, f"{medians}; ratio of the fastest rounds {best:.2f}; {len(ratios)} rounds"
    )


def seconds_row(what: str, target: float, seconds: Mapping[str, Sequence[float]], measured: str, yardstick: str) -> Row:
    """Return a row with the median time of `measured`, and the time of `yardstick` for comparison."""
    took, other = seconds[measured], median(seconds[yardstick])
    ratio = median(took) / other
    details = f"fastest {_time(min(took))}; {yardstick} {_time(other)}, ratio {ratio:.1f}; {len(took)} rounds"
    return Row(what, median(took), "s", target, details)


def this_machine() -> str:
    """Return a text that describes this machine, without its name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = next(filter(None, names), platform.machine())
    return (
        f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {version('torch')};"
        f" load when it began {os.getloadavg()[0]:.1f}"
    )


def publish(
    section: str, headings: Sequence[str], rows: Sequence[Sequence[str]], machine: str, *, write: bool, note: str = "",
    page: Path = PAGE,
) -> None:  # fmt: skip
    """Print a table with a note. With `write`, also write both with the date into a section of a page."""
    table = Table(*headings)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    click.echo("\n".join(filter(None, [note, machine])))
    if write:
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        parts = [markdown_table(headings, rows), note, f"Measured on {date}: {machine}."]
        write_section(section, "\n\n".join(filter(None, parts)), page)


def finish(section: str, rows: Sequence[Row], machine: str, *, write: bool) -> NoReturn:
    """Publish a table of measurements with targets, and exit with 1 if a target is missed."""
    publish(section, HEADINGS, [row.cells() for row in rows], machine, write=write)
    sys.exit(0 if all(row.met for row in rows) else 1)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def read_table(section: str, page: Path = PAGE) -> list[list[str]]:
    """Return the rows of the table in a section of a page, without the heading: an empty list if there is no table."""
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"<!-- {section}: measured -->\n")
    lines = [line for line in rest.partition("<!-- end -->")[0].splitlines() if line.startswith("| ")]
    return [[cell.replace("\\|", "|") for cell in line[2:-2].split(" | ")] for line in lines[2:]]


def merge(old: Sequence[Sequence[str]], new: Sequence[Sequence[str]], names: Sequence[str]) -> list[Sequence[str]]:
    """Return the rows for these names in their order: a new row, or else an old one. The name is the first cell."""
    rows = {row[0]: row for row in (*old, *new)}
    return [rows[name] for name in names if name in rows]


def row_note(new: Sequence[object], rows: Sequence[object]) -> str:
    """Return a note that some rows of a table are older, or ""."""
    return f"{len(new)} of {len(rows)} rows were measured last; the others are older." if len(new) < len(rows) else ""


def write_section(name: str, body: str, page: Path = PAGE) -> None:
    """Replace the text of a section on a page. Raises `BenchmarkError` if the page has no markers for this section."""
    text = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: measured -->", "<!-- end -->"
    section = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    text, found = section.subn(lambda _: f"{begin}\n{body.strip()}\n{end}", text, count=1)
    if not found:
        raise BenchmarkError(f"{page} has no section {begin}.")
    page.write_text(text, encoding="utf-8")


def _figure(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}" if abs(value) < 100 else f"{value:.0f} {unit}"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"
