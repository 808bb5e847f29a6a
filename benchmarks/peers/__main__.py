"""`make bench-peers`: the same ten submissions, graded by this suite and by four tools that people use today.

    python -m benchmarks.peers [--envs FOLDER] [--only TOOL] [--jobs N] [--write]

Installing takes about two minutes and 1.5 GB a tool, once; the run takes about a quarter of an hour, most of it
waiting for what never returns. Progress goes to standard error. Exits with 1 where ours is not the fastest that
isolates, or not the only one that loses nothing.
"""

import datetime
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from benchmarks.page import PAGE, replace_section
from benchmarks.peers.check50 import Check50
from benchmarks.peers.environments import PINS, default_folder, ready_environment
from benchmarks.peers.gradescope import GradescopeUtils
from benchmarks.peers.measure import measure, seconds_alone
from benchmarks.peers.nbgrader import Nbgrader
from benchmarks.peers.otter import Otter
from benchmarks.peers.ours import Trainwreck
from benchmarks.peers.submissions import make_submissions
from benchmarks.peers.table import as_markdown, kept, show
from benchmarks.peers.tool import Tool
from benchmarks.table import this_machine
from benchmarks.timing import BenchmarkError, run
from grader.sandbox import sandbox_problem
from harness.errors import UserError
from harness.run.provenance import usable_cores

SECTION = "peers"
_PEERS: dict[str, Callable[[Path, str], Tool]] = {
    "nbgrader": Nbgrader,
    "otter": Otter,
    "check50": Check50,
    "gradescope": GradescopeUtils,
}


def _say(line: str) -> None:
    click.echo(line, err=True)


def _tools(names: tuple[str, ...], envs: Path, jobs: int) -> list[Tool]:
    tools: list[Tool] = []
    for name in names:
        if name == "trainwreck":
            tools.append(Trainwreck(jobs))
            continue
        _say(f"{name}: its environment in {envs} ...")
        package, _, version = PINS[name].partition("==")
        python = ready_environment(name, envs)
        run([str(python), "-c", "import torch"])  # what lies in the page cache, ours lies there as well
        tools.append(_PEERS[name](python, f"{package.partition('[')[0]} {version}"))
    return tools


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--envs", type=click.Path(path_type=Path, file_okay=False), help="Where the environments lie.")
@click.option("--only", type=click.Choice(["trainwreck", *_PEERS]), multiple=True, help="These; repeatable.")
@click.option("--jobs", type=click.IntRange(min=1), help="Ours: replays side by side (the cores).")
@click.option("--write", is_flag=True, help=f"Write the section of {PAGE.parent.name}/{PAGE.name} too.")
def main(envs: Path | None, only: tuple[str, ...], jobs: int | None, write: bool) -> None:
    """Grade the same ten submissions with this suite and with its peers."""
    if write and only:
        raise click.UsageError("--write makes the whole table: leave --only out.")
    machine = this_machine()
    jobs = jobs or usable_cores()
    try:
        if (problem := sandbox_problem()) is not None:
            raise BenchmarkError(problem)
        tools = _tools(only or ("trainwreck", *_PEERS), (envs or default_folder()).resolve(), jobs)
        with tempfile.TemporaryDirectory(prefix="trainwreck-peers-") as scratch:
            folder = Path(scratch)
            _say("the ten submissions, each with its runs ...")
            handed_in = make_submissions(folder / "made", jobs)
            columns = [measure(tool, handed_in, folder / f"tool{n}", _say) for n, tool in enumerate(tools)]
            notes = []
            if jobs > 1 and isinstance(tools[0], Trainwreck):
                alone = seconds_alone(Trainwreck(1), handed_in, folder / "one_job", _say)
                notes.append(f"Ours with `--jobs 1`: {alone:.2f} s a submission.")
    except (BenchmarkError, UserError) as error:
        raise click.ClickException(str(error)) from None
    show(columns, notes, Console())
    if write:
        date = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        replace_section(PAGE, SECTION, as_markdown(columns, notes, machine, date))
    if not only:
        sys.exit(0 if kept(columns[0].name, columns) else 1)


if __name__ == "__main__":
    main()
